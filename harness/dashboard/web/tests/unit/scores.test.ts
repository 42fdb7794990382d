// Compares the page's scores with those of harness/stats, for a ranking that `npm run fixtures` generates.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Ranking, RunDocument, Score } from "../../src/documents";
import { geometricMean, scorable, scoreRows } from "../../src/scores";
import { OVERALL, tabLabel, testTabs } from "../../src/pages/view-tabs";
import { scoresFor } from "../../src/source";
import { heat, STEPS } from "../../src/parts/heat";

interface Fixture {
  ranking: Ranking;
  subset: { test_types: string[]; scores: Score[] };
}
const fixture: Fixture = JSON.parse(readFileSync(join(import.meta.dirname, "../fixtures/scores.json"), "utf-8"));

const expectClose = (actual: number | null | undefined, expected: number | null | undefined): void => {
  if (expected === null || expected === undefined) expect(actual ?? null).toBeNull();
  else expect(Math.abs((actual ?? Number.NaN) / expected - 1)).toBeLessThan(1e-9);
};

test("throughput scores over all tests match harness/stats", () => {
  const { ranking } = fixture;
  expect(ranking.overall.length).toBeGreaterThan(3);
  const list = scoreRows(ranking, new Map(), "throughput", scorable(ranking), ranking.overall);
  for (const score of ranking.overall) {
    const row = list.find((item) => item.name === score.implementation);
    const estimate = score.throughput?.estimate;
    expectClose(row?.score, estimate?.median);
    expect([row?.low, row?.high, row?.rank]).toEqual([
      estimate?.low ?? null,
      estimate?.high ?? null,
      score.throughput?.rank ?? null,
    ]);
  }
});

test("CPU scores over all tests match harness/stats", () => {
  const { ranking } = fixture;
  const list = scoreRows(ranking, new Map(), "cpu", scorable(ranking), ranking.overall);
  for (const score of ranking.overall) {
    const row = list.find((item) => item.name === score.implementation);
    expectClose(row?.score, score.cpu?.estimate.median);
    expect(row?.rank).toEqual(score.cpu?.rank ?? null);
  }
});

test("scores over some tests match harness/stats", () => {
  const { ranking, subset } = fixture;
  const list = scoreRows(ranking, new Map(), "throughput", subset.test_types, subset.scores);
  for (const { implementation, throughput } of subset.scores)
    expectClose(list.find((item) => item.name === implementation)?.score, throughput?.estimate.median);
});

test("test types without a baseline value have no ratios", () => {
  const { ranking } = fixture;
  const test_types = Object.fromEntries(
    Object.entries(ranking.test_types).map(([kind, { headline, ...more }]) => {
      const withoutValue = (name: string) => name === ranking.reference && kind === "json";
      const rows = headline.rows.map((row) => ({ ...row, rss_peak: withoutValue(row.implementation) ? null : 1e8 }));
      return [kind, { ...more, headline: { ...headline, rows } }];
    }),
  );
  const list = scoreRows({ ...ranking, test_types }, new Map(), "memory", scorable(ranking), null);
  expect(list.filter((row) => Object.hasOwn(row.ratios, "json"))).toEqual([]);
  expect(list.filter((row) => Object.hasOwn(row.ratios, "db"))).not.toEqual([]);
});

test("without a counted test type, there is no score", () => {
  expect(geometricMean({ json: 2 }, ["json", "db"])).toBeNull();
  expect(geometricMean({ json: 2 }, ["json"])).toBeCloseTo(2, 12);
  expect(geometricMean({ json: 2 }, [])).toBeNull();
});

test("heat colours range from 1 to about a tenth", () => {
  expect([1, 0.99, 0.5, 0.2, 0.05, 0].map(heat)).toEqual([0, 0, 2, 5, STEPS - 1, STEPS - 1]);
});

test("a group of test types has a score of its own", () => {
  const { ranking, subset } = fixture;
  const grouped = new Set(subset.test_types);
  const others = scorable(ranking).filter((kind) => !grouped.has(kind));
  const overall = ranking.overall.map((score) => ({
    ...score,
    ratios: Object.fromEntries(Object.entries(score.ratios).filter(([kind]) => !grouped.has(kind))),
  }));
  const test_types = Object.fromEntries(
    Object.entries(ranking.test_types).map(([kind, own]) => [
      kind,
      { ...own, group: grouped.has(kind) ? "protocols" : "" },
    ]),
  );
  const split: Ranking = { ...ranking, test_types, overall, groups: { protocols: subset.scores } };
  expect(scorable(split)).toEqual(others);
  expect(scorable({ ...split, groups: { protocols: [] } })).toEqual(others); // after a change of the baseline
  expect(new Set(scorable(split, "protocols"))).toEqual(grouped);
  const list = scoreRows(split, new Map(), "throughput", subset.test_types, subset.scores, "protocols");
  for (const { implementation, throughput } of subset.scores) {
    const row = list.find((item) => item.name === implementation);
    expectClose(row?.score, throughput?.estimate.median);
    expect(row?.rank).toEqual(throughput?.rank ?? null);
  }
  expect(scoresFor({ ranking: split } as RunDocument, subset.test_types)).toBe(subset.scores);
  const tabs = testTabs({ ranking: split } as RunDocument);
  expect(tabs.slice(0, 2)).toEqual([OVERALL, "overall-protocols"]);
  expect(tabs.slice(0, 3).map(tabLabel)).toEqual(["Overall", "Overall: protocols", "JSON"]);
});
