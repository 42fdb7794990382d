// The score that the page makes against harness/stats's own, on a ranking that Python made: npm run fixtures.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Ranking, Score } from "../../src/documents";
import { geometricMean, scorable, scoreLines } from "../../src/overall";
import { heat, STEPS } from "../../src/parts/heat";

interface Fixture {
  ranking: Ranking;
  subset: { test_types: string[]; scores: Score[] };
}
const fixture: Fixture = JSON.parse(readFileSync(join(import.meta.dirname, "../fixtures/scores.json"), "utf-8"));

const close = (got: number | null | undefined, wanted: number | null | undefined): void => {
  if (wanted === null || wanted === undefined) expect(got ?? null).toBeNull();
  else expect(Math.abs((got ?? Number.NaN) / wanted - 1)).toBeLessThan(1e-9);
};

test("over all test types the page's score is harness/stats's to 1e-9", () => {
  const { ranking } = fixture;
  expect(ranking.overall.length).toBeGreaterThan(3);
  const list = scoreLines(ranking, new Map(), "throughput", scorable(ranking), ranking.overall);
  for (const score of ranking.overall) {
    const line = list.find((item) => item.name === score.implementation);
    const estimate = score.throughput?.estimate;
    close(line?.score, estimate?.median);
    expect([line?.low, line?.high, line?.rank]).toEqual([
      estimate?.low ?? null,
      estimate?.high ?? null,
      score.throughput?.rank ?? null,
    ]);
  }
});

test("over all test types the page's CPU score is harness/stats's to 1e-9", () => {
  const { ranking } = fixture;
  const list = scoreLines(ranking, new Map(), "cpu", scorable(ranking), ranking.overall);
  for (const score of ranking.overall) {
    const line = list.find((item) => item.name === score.implementation);
    close(line?.score, score.cpu?.estimate.median);
    expect(line?.rank).toEqual(score.cpu?.rank ?? null);
  }
});

test("over some test types it is what harness/stats makes of these alone", () => {
  const { ranking, subset } = fixture;
  const list = scoreLines(ranking, new Map(), "throughput", subset.test_types, subset.scores);
  for (const { implementation, throughput } of subset.scores)
    close(list.find((item) => item.name === implementation)?.score, throughput?.estimate.median);
});

test("a test without the reference's figure has no factors, rather than shares of its best", () => {
  const { ranking } = fixture;
  const test_types = Object.fromEntries(
    Object.entries(ranking.test_types).map(([kind, { headline, ...more }]) => {
      const bare = (name: string) => name === ranking.reference && kind === "json";
      const rows = headline.rows.map((row) => ({ ...row, rss_peak: bare(row.implementation) ? null : 1e8 }));
      return [kind, { ...more, headline: { ...headline, rows } }];
    }),
  );
  const list = scoreLines({ ...ranking, test_types }, new Map(), "memory", scorable(ranking), null);
  expect(list.filter((line) => Object.hasOwn(line.ratios, "json"))).toEqual([]);
  expect(list.filter((line) => Object.hasOwn(line.ratios, "db"))).not.toEqual([]);
});

test("a missing test type is no zero: it takes the score away, unless it does not count", () => {
  expect(geometricMean({ json: 2 }, ["json", "db"])).toBeNull();
  expect(geometricMean({ json: 2 }, ["json"])).toBeCloseTo(2, 12);
  expect(geometricMean({ json: 2 }, [])).toBeNull();
});

test("heat goes from the best to a tenth of it and stays there", () => {
  expect([1, 0.99, 0.5, 0.2, 0.05, 0].map(heat)).toEqual([0, 0, 2, 5, STEPS - 1, STEPS - 1]);
});
