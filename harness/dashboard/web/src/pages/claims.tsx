// Claims of talks and the measurements that test them: one article per claim, grouped by talk.
import type { ClaimVerdict, StatementVerdict } from "../documents";
import {
  claimedValue,
  countByVerdict,
  groupByTalk,
  intervalPositions,
  measuredValue,
  type Verdict,
  VERDICT_MEANINGS,
} from "../claim-verdicts";
import { dateTime } from "../format";
import { useDocument, usePage } from "../hooks";
import { Waiting } from "../parts/basics";

export function ClaimsPage() {
  const { source } = usePage();
  const loaded = useDocument("claims", () => source.claims());
  if (loaded.state !== "ready") return <Waiting loaded={loaded} subject="the claims" />;
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
            No claim has been measured yet. Run <code>./tfb claims run</code>.
          </p>
        )
      ) : (
        <>
          <p>
            {countByVerdict(verdicts)
              .filter(([, count]) => count > 0)
              .map(([verdict, count]) => `${count} ${verdict}`)
              .join(", ")}
            . Each verdict holds only for the machine on which it was measured. In the charts, the tick is 1, the band
            is the claimed range, and the bar is the interval.
          </p>
          {groupByTalk(verdicts).map(([talk, members]) => (
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
    ["Source", verdict.page],
    ["Claim", verdict.said],
    ["Conditions", verdict.conditions],
    ["Conditions here", verdict.here],
    ["Sources of noise", verdict.concerns.join("; ")],
    ["Runs", verdict.runs.join(", ")],
    ["Measured", `${dateTime(verdict.measured_at)}, profile ${verdict.profile}, ${verdict.machine}`],
  ];
  return (
    <article class="claim" id={verdict.claim}>
      <h3>
        <VerdictLabel verdict={verdict.verdict} /> <bdi>{verdict.title}</bdi>
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
              {["Verdict", "Statement", "Claimed", "Measured"].map((head) => (
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
        <VerdictLabel verdict={statement.verdict} />
      </td>
      <th scope="row">
        <bdi>{statement.name}</bdi>
        {statement.context && <span class="quiet"> (context only)</span>}
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
          {statement.takes && `; to decide it: ${statement.takes}`}
        </div>
        {statement.theory && <div class="quiet">{statement.theory}</div>}
      </th>
      <td class="number">{claimedValue(statement)}</td>
      <td class="number">
        {measuredValue(statement)}
        <IntervalDrawing statement={statement} />
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

/**
 * The interval and the claimed range on a logarithmic line with a tick at 1. The text beside it has the same values.
 */
function IntervalDrawing({ statement }: { statement: StatementVerdict }) {
  const positions = intervalPositions(statement);
  if (!positions) return null;
  const { unity, value, low, high, claimed } = positions;
  return (
    <svg class="claim-drawing" width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
      {claimed && (
        <rect
          class="claimed"
          x={claimed[0] * WIDTH}
          width={(claimed[1] - claimed[0]) * WIDTH}
          y={3}
          height={HEIGHT - 6}
        />
      )}
      <line class="unity" x1={unity * WIDTH} x2={unity * WIDTH} y1={0} y2={HEIGHT} />
      <line class="interval" x1={low * WIDTH} x2={high * WIDTH} y1={HEIGHT / 2} y2={HEIGHT / 2} />
      <circle cx={value * WIDTH} cy={HEIGHT / 2} r={3} />
    </svg>
  );
}

/** A verdict. Its text carries the meaning; the colour only supports it. */
function VerdictLabel({ verdict }: { verdict: Verdict }) {
  return (
    <span class={`verdict ${verdict.replaceAll(" ", "-")}`} title={VERDICT_MEANINGS[verdict]}>
      {verdict}
    </span>
  );
}
