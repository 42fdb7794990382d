// Tests for changing the baseline without a server. `npm run fixtures` generates the ranking.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { rebase } from "../../src/baseline";
import type { Ranking, RunDocument } from "../../src/documents";
import { geometricMean, scorable, scoreRows } from "../../src/scores";

const { ranking }: { ranking: Ranking } = JSON.parse(
  readFileSync(join(import.meta.dirname, "../fixtures/scores.json"), "utf-8"),
);
const names = ranking.overall.map((score) => score.implementation);
const [first = "", second = ""] = names.filter((name) => name !== ranking.reference);
const doc: Pick<RunDocument, "ranking" | "sentences"> & { run: { implementations: { name: string }[] } } = {
  ranking,
  sentences: { json: {} },
  run: { implementations: names.map((name) => ({ name })) },
};

const rebased = rebase(doc as RunDocument, first).ranking;

test("ratios to a new baseline are quotients without intervals", () => {
  const ratio = (of: Ranking, name: string): number | undefined =>
    of.test_types.json?.headline.rows.find((row) => row.implementation === name)?.throughput?.to_reference?.value;
  expect(rebased.reference).toBe(first);
  expect(ratio(rebased, first)).toBe(1);
  expect(ratio(rebased, second)).toBeCloseTo((ratio(ranking, second) ?? 0) / (ratio(ranking, first) ?? 1), 12);
  const rows = rebased.test_types.json?.headline.rows ?? [];
  expect(rows.flatMap((row) => row.throughput?.to_reference?.low ?? [])).toEqual([]);
});

test("a new baseline keeps the order of scores", () => {
  const order = (of: Ranking): string[] =>
    scoreRows(of, new Map(), "throughput", scorable(of), of.overall).map((row) => row.name);
  expect(order(rebased)).toEqual(order(ranking));
  const score = rebased.overall.find(({ implementation }) => implementation === first);
  expect(score?.throughput?.estimate.median).toBe(1);
  expect(geometricMean(score?.ratios ?? {}, Object.keys(score?.ratios ?? {}))).toBeCloseTo(1, 12);
});

test("an unknown baseline is rejected by name", () => {
  expect(() => rebase(doc as RunDocument, "nobody")).toThrow("nobody is not an implementation of this run");
});
