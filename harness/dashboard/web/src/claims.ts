// What a verdict on a claim says: words, counts and figures, apart from how they are drawn.
import type { ClaimVerdict, StatementVerdict } from "./documents";
import { times, timesWithInterval } from "./format";

export type Word = StatementVerdict["verdict"];
export const WORDS: readonly Word[] = ["supported", "direction only", "refuted", "undecided"];

/** A sentence on each verdict. */
export const MEANING: Record<Word, string> = {
  supported: "The interval lies within the tolerance of what was said, or on the claimed side of 1.",
  "direction only": "The order is as said, the size is not: the interval excludes it.",
  refuted: "The interval excludes the order, or the likeness, that was said.",
  undecided: "The interval leaves it open; it says what would decide it.",
};

/** How many claims have each verdict, in the order of WORDS. */
export function tally(verdicts: readonly { verdict: Word }[]): [Word, number][] {
  return WORDS.map((word): [Word, number] => [word, verdicts.filter((each) => each.verdict === word).length]);
}

/** What was said, and what theory makes of it on this machine's CPUs where that is something else. */
export function said(statement: StatementVerdict): string {
  const here = statement.expected;
  if (here === null || !statement.theory || Math.abs(parseFloat(statement.said) - here) < 0.01 * here)
    return statement.said;
  return `${statement.said}, here ${times(here)}`;
}

/** The ratio with its interval, or a count where nothing is compared. */
export function measured(statement: StatementVerdict): string {
  const { value, low, high } = statement;
  if (value === null) return "–";
  if (!statement.to) return value.toLocaleString("en");
  return timesWithInterval({ value, low, high });
}

/** The verdicts of a talk together, talks in the order in which they first appear. */
export function byTalk(verdicts: readonly ClaimVerdict[]): [string, ClaimVerdict[]][] {
  const talks = new Map<string, ClaimVerdict[]>();
  for (const verdict of verdicts) talks.set(verdict.talk, [...(talks.get(verdict.talk) ?? []), verdict]);
  return [...talks];
}
