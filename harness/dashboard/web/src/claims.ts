// What a verdict on a claim says: words, counts and figures, apart from how they are drawn.
import type { ClaimVerdict, StatementVerdict } from "./documents";
import { times, timesWithInterval } from "./format";

export type Word = StatementVerdict["verdict"];
export const WORDS: readonly Word[] = ["supported", "direction only", "refuted", "needs a larger machine", "undecided"];

/** A sentence on each verdict. */
export const MEANING: Record<Word, string> = {
  supported: "The interval lies within the tolerance of what was said, or on the claimed side of 1.",
  "direction only": "The order is as said; the size is another, or open.",
  refuted: "The interval excludes the order, or the likeness, that was said.",
  "needs a larger machine": "What was said happens at a rate that takes more CPUs than there are.",
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

/** Where a statement's interval, its value, 1 and what was said lie on a logarithmic line from 0 to 1; null without. */
export function places(statement: StatementVerdict) {
  const { value, low, high, least, most } = statement;
  if (!value || !low || !high) return null;
  const logs = [1, low, high, least, most].filter((each): each is number => Boolean(each)).map(Math.log);
  const span = 1.1 * Math.max(Math.max(...logs) - Math.min(...logs), Math.log(1.25));
  const first = (Math.min(...logs) + Math.max(...logs) - span) / 2;
  const at = (ratio: number) => (Math.log(ratio) - first) / span;
  const meant: [number, number] | null = least || most ? [least ? at(least) : 0, most ? at(most) : 1] : null;
  return { one: at(1), value: at(value), low: at(low), high: at(high), meant };
}
