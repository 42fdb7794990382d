// A summary of a run or comparison. harness/report writes the sentences, which the command line also prints.

export function Summary({ parts }: { parts: readonly string[] | undefined }) {
  const [lead, ...rest] = parts ?? [];
  if (!lead) return null;
  const others = rest.filter(Boolean);
  return (
    <section class="summary" aria-label="Summary">
      <p class="summary-lead">
        <bdi>{lead}</bdi>
      </p>
      {others.length > 0 && (
        <p class="summary-rest">
          <bdi>{others.join(" ")}</bdi>
        </p>
      )}
    </section>
  );
}
