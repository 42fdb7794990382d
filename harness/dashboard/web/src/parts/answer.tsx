// The answer in sentences, as the command line prints it: harness/report wrote it.

export function Answer({ parts }: { parts: readonly string[] | undefined }) {
  const [lead, ...rest] = parts ?? [];
  if (!lead) return null;
  const others = rest.filter(Boolean);
  return (
    <section class="answer" aria-label="The answer">
      <p class="answer-lead">
        <bdi>{lead}</bdi>
      </p>
      {others.length > 0 && (
        <p class="answer-rest">
          <bdi>{others.join(" ")}</bdi>
        </p>
      )}
    </section>
  );
}
