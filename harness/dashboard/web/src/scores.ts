// Computes overall scores: geometric means of ratios over the selected test types. Intervals and ranks come from
// harness/stats, so they are missing unless harness/stats has scored the same test types.
import type { ImplementationInfo, RankInterval, Ranking, Row, Score } from "./documents";
import { isNumber } from "./format";
import { SPECS, shareOfBest } from "./metrics";
import type { Metric } from "./route";

export interface ScoreRow {
  name: string;
  info: ImplementationInfo | null;
  score: number | null; // null if at least one counted test type has no ratio
  low: number | null;
  high: number | null;
  rank: RankInterval | null;
  position: number | null;
  share: number | null; // share of the best score
  ratios: Record<string, number>; // test type -> ratio to the baseline; above 1 is better for every metric
  values: Record<string, number>; // test type -> value of the metric
  shares: Record<string, number>; // test type -> share of the best
  missing: string[]; // counted test types without a ratio
  tieGroup: number | null; // tie group from harness/stats
  flags: string[]; // union of the flags in the counted test types
}

/** Return the geometric mean of the ratios in `tests`, or null if a ratio is missing or there are no tests. */
export function geometricMean(ratios: Readonly<Record<string, number>>, tests: readonly string[]): number | null {
  let sum = 0;
  for (const test of tests) {
    const ratio = Object.hasOwn(ratios, test) ? ratios[test] : undefined;
    if (!isNumber(ratio) || ratio <= 0) return null;
    sum += Math.log(ratio);
  }
  return tests.length > 0 ? Math.exp(sum / tests.length) : null;
}

/**
 * Return the test types that can be scored in a group or, if `group` is null, among the test types without a group. If
 * all test types belong to groups, null selects all of them. Test types without a value for the baseline are omitted.
 */
export function scorable(ranking: Ranking, group: string | null = null): string[] {
  const onlyGroups = Object.values(ranking.test_types).every((test) => test.group !== "");
  return Object.entries(ranking.test_types)
    .filter(([, test]) => (onlyGroups ? group === null : test.group === (group ?? "")))
    .filter(([, { headline }]) =>
      ranking.reference === null
        ? headline.rows.some((row) => row.throughput)
        : headline.rows.some((row) => row.implementation === ranking.reference && row.throughput),
    )
    .map(([test]) => test);
}

/** Return the test types that scores cover. */
export function scoredTests(scores: readonly Score[]): ReadonlySet<string> {
  return new Set(scores.flatMap((score) => Object.keys(score.ratios)));
}

/**
 * Return a row for each implementation, best score first and missing scores last. ``counting`` are the test types that
 * count towards the score. ``served`` are the scores that harness/stats computed for the same test types.
 */
export function scoreRows(
  ranking: Ranking,
  infos: ReadonlyMap<string, ImplementationInfo>,
  metric: Metric,
  counting: readonly string[],
  served: readonly Score[] | null,
  group: string | null = null,
): ScoreRow[] {
  const tests = scorable(ranking, group);
  const byTest = new Map(tests.map((test) => [test, advantages(ranking, test, metric)]));
  const servedScores = new Map(
    (served ?? []).map((score) => [
      score.implementation,
      metric === "throughput" ? score.throughput : metric === "cpu" ? score.cpu : null,
    ]),
  );
  const flags = new Map<string, Set<string>>();
  for (const row of counting.flatMap((test) => ranking.test_types[test]?.headline.rows ?? []))
    flags.set(row.implementation, new Set([...(flags.get(row.implementation) ?? []), ...row.flags]));
  const names = new Set([...infos.keys(), ...tests.flatMap((test) => [...(byTest.get(test)?.keys() ?? [])])]);
  const list = [...names].map((name): ScoreRow => {
    const ratios: Record<string, number> = {};
    const values: Record<string, number> = {};
    const shares: Record<string, number> = {};
    for (const test of tests) {
      const ofTest = byTest.get(test)?.get(name);
      if (isNumber(ofTest?.ratio)) ratios[test] = ofTest.ratio;
      if (isNumber(ofTest?.share)) shares[test] = ofTest.share;
      if (isNumber(ofTest?.value)) values[test] = ofTest.value;
    }
    const servedScore = servedScores.get(name);
    return {
      name,
      info: infos.get(name) ?? null,
      score: geometricMean(ratios, counting),
      low: servedScore?.estimate.low ?? null,
      high: servedScore?.estimate.high ?? null,
      rank: servedScore?.rank ?? null,
      position: null,
      share: null,
      ratios,
      values,
      shares,
      missing: counting.filter((test) => !Object.hasOwn(ratios, test)),
      tieGroup: servedScore?.tie_group ?? null,
      flags: [...(flags.get(name) ?? [])],
    };
  });
  list.sort(
    (a, b) =>
      (b.score ?? -1) - (a.score ?? -1) || a.missing.length - b.missing.length || a.name.localeCompare(b.name, "en"),
  );
  const best = list[0]?.score ?? null;
  let position = 0;
  return list.map((row, index) => {
    if (row.score === null) return row;
    if (list[index - 1]?.score !== row.score) position = index + 1;
    return { ...row, position, share: best ? row.score / best : null };
  });
}

interface Advantage {
  ratio: number; // ratio to the baseline (above 1 is better), or the share of the best if there is no baseline
  share: number; // share of the best
  value: number | null;
}

/** Return each implementation's ratio, share and value in a test type. */
function advantages(ranking: Ranking, test: string, metric: Metric): Map<string, Advantage> {
  const rows = ranking.test_types[test]?.headline.rows ?? [];
  const spec = SPECS[metric];
  const ranked = rows.filter((row) => row.ranked && isNumber(spec.value(row)));
  const reference = ranked.find((row) => row.implementation === ranking.reference);
  const values = ranked.map((row) => spec.value(row) ?? 0).filter((value) => value > 0);
  if (values.length === 0) return new Map();
  const best = spec.lowerIsBetter ? Math.min(...values) : Math.max(...values);
  return new Map(
    ranked.flatMap((row) => {
      const share = shareOfBest(spec, spec.value(row), best);
      const ratio = ranking.reference === null ? share : reference ? advantage(row, reference, metric) : null;
      return isNumber(ratio) && isNumber(share)
        ? [[row.implementation, { ratio, share, value: spec.value(row) }] as const]
        : [];
    }),
  );
}

function advantage(row: Row, reference: Row, metric: Metric): number | null {
  const spec = SPECS[metric];
  const served = spec.standing(row)?.to_reference?.value;
  const ratio = served ?? (spec.value(row) ?? Number.NaN) / (spec.value(reference) ?? Number.NaN);
  if (!isNumber(ratio) || ratio <= 0) return null;
  return spec.lowerIsBetter ? 1 / ratio : ratio;
}
