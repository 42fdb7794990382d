// The overall score: geometric mean of ratios over the test types chosen, as harness/stats has it. Intervals and ranks
// are never made here: they are harness/stats's, for exactly the tests it scored.
import type { ImplementationInfo, RankInterval, Ranking, Row, Score } from "./documents";
import { isNumber } from "./format";
import { SPECS, shareOfBest } from "./metrics";
import type { Metric } from "./route";

export interface ScoreLine {
  name: string;
  info: ImplementationInfo | null;
  score: number | null; // null where a test type that counts is missing
  low: number | null;
  high: number | null;
  rank: RankInterval | null;
  position: number | null;
  share: number | null; // of the best score
  ratios: Record<string, number>; // advantage over the reference by test type: above 1 is better
  shares: Record<string, number>; // of the test type's best
  missing: string[];
  tie: number | null; // the group that it ties in, of harness/stats
  flags: string[]; // of any test type that counts
}

/** The geometric mean over these test types; null where one is missing or there is none. */
export function geometricMean(ratios: Readonly<Record<string, number>>, tests: readonly string[]): number | null {
  let sum = 0;
  for (const test of tests) {
    const ratio = Object.hasOwn(ratios, test) ? ratios[test] : undefined;
    if (!isNumber(ratio) || ratio <= 0) return null;
    sum += Math.log(ratio);
  }
  return tests.length > 0 ? Math.exp(sum / tests.length) : null;
}

/** The test types that can be scored: those that the reference has, or all where there is no reference. */
export function scorable(ranking: Ranking): string[] {
  return Object.entries(ranking.test_types)
    .filter(([, { headline }]) =>
      ranking.reference === null
        ? headline.rows.some((row) => row.throughput)
        : headline.rows.some((row) => row.implementation === ranking.reference && row.throughput),
    )
    .map(([test]) => test);
}

/** Every implementation's score, best first, those without one last. ``served`` are harness/stats's for ``counting``. */
export function scoreLines(
  ranking: Ranking,
  infos: ReadonlyMap<string, ImplementationInfo>,
  metric: Metric,
  counting: readonly string[],
  served: readonly Score[] | null,
): ScoreLine[] {
  const tests = scorable(ranking);
  const byTest = new Map(tests.map((test) => [test, advantages(ranking, test, metric)]));
  const known = new Map(
    (served ?? []).map((score) => [
      score.implementation,
      metric === "throughput" ? score.throughput : metric === "cpu" ? score.cpu : null,
    ]),
  );
  const flags = new Map<string, Set<string>>();
  for (const row of counting.flatMap((test) => ranking.test_types[test]?.headline.rows ?? []))
    flags.set(row.implementation, new Set([...(flags.get(row.implementation) ?? []), ...row.flags]));
  const names = new Set([...infos.keys(), ...tests.flatMap((test) => [...(byTest.get(test)?.keys() ?? [])])]);
  const list = [...names].map((name): ScoreLine => {
    const ratios: Record<string, number> = {};
    const shares: Record<string, number> = {};
    for (const test of tests) {
      const mine = byTest.get(test)?.get(name);
      if (isNumber(mine?.ratio)) ratios[test] = mine.ratio;
      if (isNumber(mine?.share)) shares[test] = mine.share;
    }
    const from = known.get(name);
    return {
      name,
      info: infos.get(name) ?? null,
      score: geometricMean(ratios, counting),
      low: from?.estimate.low ?? null,
      high: from?.estimate.high ?? null,
      rank: from?.rank ?? null,
      position: null,
      share: null,
      ratios,
      shares,
      missing: counting.filter((test) => !Object.hasOwn(ratios, test)),
      tie: from?.tie_group ?? null,
      flags: [...(flags.get(name) ?? [])],
    };
  });
  list.sort(
    (a, b) =>
      (b.score ?? -1) - (a.score ?? -1) || a.missing.length - b.missing.length || a.name.localeCompare(b.name, "en"),
  );
  const best = list[0]?.score ?? null;
  let place = 0;
  return list.map((line, index) => {
    if (line.score === null) return line;
    if (list[index - 1]?.score !== line.score) place = index + 1;
    return { ...line, position: place, share: best ? line.score / best : null };
  });
}

/** Each implementation's advantage in a test type: over the reference, or as a share of the best without one. */
function advantages(ranking: Ranking, test: string, metric: Metric): Map<string, { ratio: number; share: number }> {
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
      return isNumber(ratio) && isNumber(share) ? [[row.implementation, { ratio, share }] as const] : [];
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
