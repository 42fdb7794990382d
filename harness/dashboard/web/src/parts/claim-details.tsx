// The details of a claim: the quotation, the conditions of the measurement, and a verdict on each statement.
import type { ComponentChildren } from "preact";
import type { ClaimVerdict, StatementVerdict } from "../documents";
import { claimedValue, intervalPositions, measuredValue, type Verdict, VERDICT_MEANINGS } from "../claim-verdicts";
import { dateTime } from "../format";
import { href, usePage } from "../hooks";
import { Facts } from "./basics";
import { number, PlainTable } from "./plain-table";

export function ClaimDetails({ verdict }: { verdict: ClaimVerdict }) {
  const { route } = usePage();
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
    <details class="claim" id={`claim-${verdict.claim}`} open={route.claim === verdict.claim}>
      <summary>
        <VerdictLabel verdict={verdict.verdict} /> <bdi>{verdict.title}</bdi>
      </summary>
      <p>
        <bdi>{verdict.sentence}</bdi>{" "}
        <a href={href({ page: "claims", claim: verdict.claim })} aria-label={`Link to the claim: ${verdict.title}`}>
          Link to this claim
        </a>
      </p>
      <Facts facts={facts.map(([name, text]) => [name, text && <bdi>{text}</bdi>])} />
      <PlainTable
        label={verdict.title}
        heads={["Verdict", "Statement", number("Claimed"), number("Measured")]}
        rows={verdict.statements.map((statement) => ({ key: statement.name, cells: statementCells(statement) }))}
        header={1}
        cards
      />
      <p class="quiet">
        In the drawings, the band is the claimed range, the bar is the measured interval, and the tick is a ratio of 1.
      </p>
    </details>
  );
}

/** Return the table cells for a statement. */
function statementCells(statement: StatementVerdict): ComponentChildren[] {
  return [
    <VerdictLabel key="verdict" verdict={statement.verdict} />,
    <>
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
        {statement.takes && `; needed for a decision: ${statement.takes}`}
      </div>
      {statement.theory && <div class="quiet">{statement.theory}</div>}
    </>,
    claimedValue(statement),
    <>
      {measuredValue(statement)}
      <IntervalDrawing statement={statement} />
      {statement.processes > 0 && (
        <div class="quiet">
          {statement.processes} processes
          {statement.remarks.length > 0 && `, ${statement.remarks.join(", ")}`}
        </div>
      )}
    </>,
  ];
}

const WIDTH = 160;
const HEIGHT = 18;

/**
 * A logarithmic line with the measured interval, the claimed range and a tick at 1. Screen readers skip it, because the
 * adjacent text contains the values.
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

/** A coloured verdict. The text alone conveys the meaning. */
export function VerdictLabel({ verdict }: { verdict: Verdict }) {
  return (
    <span class={`verdict ${verdict.replaceAll(" ", "-")}`} title={VERDICT_MEANINGS[verdict]}>
      {verdict}
    </span>
  );
}
