// Pure functions that summarize a TechEmpower file: the leader, the size of the lead, and a note that the uncertainty
// is unknown. The wording follows harness/report/summary.py.
import type { ImplementationInfo, Ranking } from "../documents";
import { count, percent, times } from "../format";
import { testName } from "../load";
import { scorable, scoreRows } from "../scores";

const OVERALL = "overall";
const UNCERTAINTY = "Each cell was measured once, so there are no intervals, and differences may be due to chance.";
const ADVICE =
  "To get intervals, measure several times on the same machine, for example with ./tfb run --profile standard.";

/** Return summary sentences by test type and metric. Throughput is the only metric in a TechEmpower file. */
export function summarize(
  ranking: Ranking,
  infos: readonly ImplementationInfo[],
  environment: string,
): Record<string, Record<string, string[]>> {
  const environmentSentence = environment ? `Measured on ${environment}.` : "";
  const leads: [string, string][] = Object.values(ranking.test_types).map(({ test_type }) => [
    test_type,
    testLead(ranking, test_type),
  ]);
  leads.unshift([OVERALL, overallLead(ranking, infos)]);
  return Object.fromEntries(
    leads
      .filter(([, lead]) => lead)
      .map(([kind, lead]) => [kind, { throughput: [lead, UNCERTAINTY, environmentSentence, ADVICE] }]),
  );
}

function overallLead(ranking: Ranking, infos: readonly ImplementationInfo[]): string {
  const byName = new Map(infos.map((info) => [info.name, info]));
  const tests = scorable(ranking);
  const [first, second] = scoreRows(ranking, byName, "throughput", tests, null).filter((row) => row.score !== null);
  if (!first) return "";
  const over = tests.length === 1 ? "one test type" : `${tests.length} test types`;
  const lead = `${first.name} leads overall: the geometric mean of its shares of the best over ${over} is ${percent(first.score)}`;
  return second
    ? `${lead}, ${times((first.score ?? 0) / (second.score ?? 1))} ${second.name}'s.`
    : `${lead}; no other implementation has values in all of them.`;
}

function testLead(ranking: Ranking, test: string): string {
  const rows = (ranking.test_types[test]?.headline.rows ?? [])
    .flatMap(({ implementation, ranked, throughput }) =>
      ranked && throughput ? [{ implementation, rate: throughput.estimate.median }] : [],
    )
    .sort((a, b) => b.rate - a.rate);
  const [first, second] = rows;
  if (!first) return "";
  const lead = `${first.implementation} leads ${testName(test)} with ${count(Math.round(first.rate))} requests/s`;
  if (!second || second.rate <= 0) return `${lead}; no other implementation was measured.`;
  return `${lead}, ${times(first.rate / second.rate)} ${second.implementation}'s.`;
}
