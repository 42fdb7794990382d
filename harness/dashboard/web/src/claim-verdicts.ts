// Pure functions that label, count, filter and position claim verdicts for display.
import type { ClaimVerdict, StatementVerdict } from "./documents";
import { times, timesWithInterval } from "./format";

export type Verdict = StatementVerdict["verdict"];
export const VERDICTS: readonly Verdict[] = [
  "supported",
  "direction only",
  "refuted",
  "needs a larger machine",
  "undecided",
];

/** The meaning of each verdict, shown as a tooltip. */
export const VERDICT_MEANINGS: Record<Verdict, string> = {
  supported: "The interval lies within the tolerance of the claimed value, or on the claimed side of 1.",
  "direction only": "The direction is as claimed, but the size differs or is undecided.",
  refuted: "The interval rules out the claimed direction or the claimed equality.",
  "needs a larger machine": "The claim concerns a rate that needs more CPUs than this machine has.",
  undecided: "The interval neither supports nor refutes the claim; the statement says what would settle it.",
};

/** Count the claims by verdict, in the order of VERDICTS. */
export function countByVerdict(verdicts: readonly { verdict: Verdict }[]): [Verdict, number][] {
  return VERDICTS.map((verdict): [Verdict, number] => [
    verdict,
    verdicts.filter((item) => item.verdict === verdict).length,
  ]);
}

/** Return the claimed value. If the claim implies a different value at this machine's CPU count, append it. */
export function claimedValue(statement: StatementVerdict): string {
  const here = statement.expected;
  if (here === null || !statement.theory || Math.abs(parseFloat(statement.said) - here) < 0.01 * here)
    return statement.said;
  return `${statement.said}, here ${times(here)}`;
}

/** Return the measured ratio with its interval, or the measured count if the statement makes no comparison. */
export function measuredValue(statement: StatementVerdict): string {
  const { value, low, high } = statement;
  if (value === null) return "–";
  if (!statement.to) return value.toLocaleString("en");
  return timesWithInterval({ value, low, high });
}

/** Group verdicts by talk, in the order of first appearance. */
export function groupByTalk(verdicts: readonly ClaimVerdict[]): [string, ClaimVerdict[]][] {
  const talks = new Map<string, ClaimVerdict[]>();
  for (const verdict of verdicts) talks.set(verdict.talk, [...(talks.get(verdict.talk) ?? []), verdict]);
  return [...talks];
}

/**
 * Return where the interval, the value, a ratio of 1 and the claimed range lie on a logarithmic line from 0 (left) to 1
 * (right). Return null if there is no interval.
 */
export function intervalPositions(statement: StatementVerdict) {
  const { value, low, high, least, most } = statement;
  if (!value || !low || !high) return null;
  const logs = [1, low, high, least, most].filter((item): item is number => Boolean(item)).map(Math.log);
  const span = 1.1 * Math.max(Math.max(...logs) - Math.min(...logs), Math.log(1.25));
  const first = (Math.min(...logs) + Math.max(...logs) - span) / 2;
  const at = (ratio: number) => (Math.log(ratio) - first) / span;
  const claimed: [number, number] | null = least || most ? [least ? at(least) : 0, most ? at(most) : 1] : null;
  return { unity: at(1), value: at(value), low: at(low), high: at(high), claimed };
}

/** Return the claims that have this verdict (or any, if empty) and contain all words, ignoring case. */
export function filterClaims(
  verdicts: readonly ClaimVerdict[],
  { text, verdict }: { text: string; verdict: string },
): ClaimVerdict[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return verdicts.filter((item) => {
    if (verdict && item.verdict !== verdict) return false;
    const names = item.statements.flatMap((statement) => [statement.name, statement.of, statement.to]);
    const all = [item.claim, item.title, item.talk, item.said, ...names].join(" ").toLowerCase();
    return words.every((word) => all.includes(word));
  });
}

/** Return the statement that determined the claim's verdict: the first judged statement with that verdict. */
export function leadingStatement({ verdict, statements }: ClaimVerdict): StatementVerdict | null {
  const judged = statements.filter((statement) => !statement.context);
  return judged.find((statement) => statement.verdict === verdict) ?? judged[0] ?? statements[0] ?? null;
}
