// Texts, counts and chart positions of the verdicts on claims, separate from their presentation.
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

/** Explanation of each verdict. */
export const VERDICT_MEANINGS: Record<Verdict, string> = {
  supported: "The interval lies within the tolerance of the claimed value, or on the claimed side of 1.",
  "direction only": "The direction is as claimed, but the size differs or is undecided.",
  refuted: "The interval excludes the claimed direction or equality.",
  "needs a larger machine": "The claim concerns a rate that needs more CPUs than this machine has.",
  undecided: "The interval does not decide the claim; the statement says what would decide it.",
};

/** Count the claims by verdict, in the order of VERDICTS. */
export function countByVerdict(verdicts: readonly { verdict: Verdict }[]): [Verdict, number][] {
  return VERDICTS.map((verdict): [Verdict, number] => [
    verdict,
    verdicts.filter((item) => item.verdict === verdict).length,
  ]);
}

/** Return the claimed value, with the value that theory predicts for this machine's CPUs if it differs. */
export function claimedValue(statement: StatementVerdict): string {
  const here = statement.expected;
  if (here === null || !statement.theory || Math.abs(parseFloat(statement.said) - here) < 0.01 * here)
    return statement.said;
  return `${statement.said}, here ${times(here)}`;
}

/** Return the ratio with its interval, or a count if nothing is compared. */
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
 * Return the positions (0 to 1) of interval, value, 1 and claimed range on a logarithmic line, or null without an
 * interval.
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
