// The answer of a TechEmpower file in sentences, as harness/report/summary.py gives that of a run: who leads, by what,
// and how sure that is, which is not at all with one measurement a cell. Pure.
import type { ImplementationInfo, Ranking } from "../documents";
import { count, percent, times } from "../format";
import { testName } from "../load";
import { scorable, scoreLines } from "../overall";

const OVERALL = "overall";
const CERTAINTY =
  "Each cell was measured once and has no interval: which of these differences are real, the file does not say.";
const SURER = "For that, measure several times on the same machine, as ./tfb run --profile standard does.";

/** By test type, Overall among them where something has a score, then by metric: throughput, as the file ranks. */
export function answers(
  ranking: Ranking,
  infos: readonly ImplementationInfo[],
  environment: string,
): Record<string, Record<string, string[]>> {
  const place = environment ? `Measured on ${environment}.` : "";
  const said: [string, string][] = Object.values(ranking.test_types).map(({ test_type }) => [
    test_type,
    leadOf(ranking, test_type),
  ]);
  said.unshift([OVERALL, leadOverall(ranking, infos)]);
  return Object.fromEntries(
    said.filter(([, lead]) => lead).map(([kind, lead]) => [kind, { throughput: [lead, CERTAINTY, place, SURER] }]),
  );
}

function leadOverall(ranking: Ranking, infos: readonly ImplementationInfo[]): string {
  const byName = new Map(infos.map((info) => [info.name, info]));
  const tests = scorable(ranking);
  const [first, second] = scoreLines(ranking, byName, "throughput", tests, null).filter((line) => line.score !== null);
  if (!first) return "";
  const over = tests.length === 1 ? "one test type" : `${tests.length} test types`;
  const lead = `${first.name} leads overall: the geometric mean of its shares of the best over ${over} is ${percent(first.score)}`;
  return second
    ? `${lead}, ${times((first.score ?? 0) / (second.score ?? 1))} ${second.name}'s.`
    : `${lead}; nothing else has all of them.`;
}

function leadOf(ranking: Ranking, test: string): string {
  const rows = (ranking.test_types[test]?.headline.rows ?? [])
    .flatMap(({ implementation, ranked, throughput }) =>
      ranked && throughput ? [{ implementation, rate: throughput.estimate.median }] : [],
    )
    .sort((a, b) => b.rate - a.rate);
  const [first, second] = rows;
  if (!first) return "";
  const lead = `${first.implementation} leads ${testName(test)} with ${count(Math.round(first.rate))} requests/s`;
  if (!second || second.rate <= 0) return `${lead}; nothing else was measured.`;
  return `${lead}, ${times(first.rate / second.rate)} ${second.implementation}'s.`;
}
