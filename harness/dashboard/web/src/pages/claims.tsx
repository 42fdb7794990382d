// What talks claim, and what was measured on it: one article a claim, by talk, with conditions and what would decide it.
import type { ClaimVerdict, StatementVerdict } from "../documents";
import { byTalk, MEANING, measured, places, said, tally, type Word } from "../claims";
import { moment } from "../format";
import { useDocument, usePage } from "../hooks";
import { Waiting } from "../parts/basics";

export function ClaimsPage() {
  const { source } = usePage();
  const loaded = useDocument("claims", () => source.claims());
  if (loaded.state !== "ready") return <Waiting loaded={loaded} what="the claims" />;
  const { verdicts, problem } = loaded.value;
  return (
    <>
      <div class="heading">
        <h1>Claims</h1>
      </div>
      {problem && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {verdicts.length === 0 ? (
        !problem && (
          <p class="empty">
            No claim has been measured into these results: <code>./tfb claims run</code> does.
          </p>
        )
      ) : (
        <>
          <p>
            {tally(verdicts)
              .filter(([, count]) => count > 0)
              .map(([word, count]) => `${count} ${word}`)
              .join(", ")}
            . Talks claim these; each verdict holds for the machine that it was measured on. In the pictures the tick is
            1, the band what was said, and the bar the interval.
          </p>
          {byTalk(verdicts).map(([talk, members]) => (
            <section key={talk}>
              <h2>
                <bdi>{talk}</bdi>
              </h2>
              {members.map((verdict) => (
                <Claim key={verdict.claim} verdict={verdict} />
              ))}
            </section>
          ))}
        </>
      )}
    </>
  );
}

function Claim({ verdict }: { verdict: ClaimVerdict }) {
  const facts: [string, string][] = [
    ["Where", verdict.page],
    ["Said", verdict.said],
    ["Conditions", verdict.conditions],
    ["Here", verdict.here],
    ["Disturbed by", verdict.concerns.join("; ")],
    ["Runs", verdict.runs.join(", ")],
    ["Measured", `${moment(verdict.measured_at)}, profile ${verdict.profile}, ${verdict.machine}`],
  ];
  return (
    <article class="claim" id={verdict.claim}>
      <h3>
        <Verdict word={verdict.verdict} /> <bdi>{verdict.title}</bdi>
      </h3>
      <p>
        <bdi>{verdict.sentence}</bdi>
      </p>
      <dl class="facts">
        {facts
          .filter(([, text]) => text)
          .map(([name, text]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>
                <bdi>{text}</bdi>
              </dd>
            </div>
          ))}
      </dl>
      <div class="table-frame" tabIndex={0} role="region" aria-label={verdict.title}>
        <table class="plain-table">
          <thead>
            <tr>
              {["Verdict", "Statement", "Said", "Measured"].map((head) => (
                <th scope="col" key={head}>
                  {head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {verdict.statements.map((statement) => (
              <Statement key={statement.name} statement={statement} />
            ))}
          </tbody>
        </table>
      </div>
    </article>
  );
}

function Statement({ statement }: { statement: StatementVerdict }) {
  return (
    <tr>
      <td>
        <Verdict word={statement.verdict} />
      </td>
      <th scope="row">
        <bdi>{statement.name}</bdi>
        {statement.context && <span class="quiet"> (context: decides nothing)</span>}
        <div class="quiet">
          {statement.metric} {statement.metric && "of"} <bdi>{statement.of}</bdi>
          {statement.to && (
            <>
              {" "}
              ÷ <bdi>{statement.to}</bdi>
            </>
          )}
        </div>
        <div class="quiet">
          {statement.reason}
          {statement.takes && `; to tell more: ${statement.takes}`}
        </div>
        {statement.theory && <div class="quiet">{statement.theory}</div>}
      </th>
      <td class="number">{said(statement)}</td>
      <td class="number">
        {measured(statement)}
        <Picture statement={statement} />
        {statement.processes > 0 && (
          <div class="quiet">
            {statement.processes} processes
            {statement.remarks.length > 0 && `, ${statement.remarks.join(", ")}`}
          </div>
        )}
      </td>
    </tr>
  );
}

const WIDTH = 160;
const HEIGHT = 18;

/** The interval against what was said, on a logarithmic line with a tick at 1; the figures beside it say the same. */
function Picture({ statement }: { statement: StatementVerdict }) {
  const found = places(statement);
  if (!found) return null;
  const { one, value, low, high, meant } = found;
  return (
    <svg class="claim-picture" width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
      {meant && (
        <rect class="meant" x={meant[0] * WIDTH} width={(meant[1] - meant[0]) * WIDTH} y={3} height={HEIGHT - 6} />
      )}
      <line class="one" x1={one * WIDTH} x2={one * WIDTH} y1={0} y2={HEIGHT} />
      <line class="interval" x1={low * WIDTH} x2={high * WIDTH} y1={HEIGHT / 2} y2={HEIGHT / 2} />
      <circle cx={value * WIDTH} cy={HEIGHT / 2} r={3} />
    </svg>
  );
}

/** The verdict in a word whose colour is not all that tells it. */
function Verdict({ word }: { word: Word }) {
  return (
    <span class={`verdict ${word.replaceAll(" ", "-")}`} title={MEANING[word]}>
      {word}
    </span>
  );
}
