// Pure functions that compute ratios to a different baseline on pages without a server. These ratios have no intervals,
// because only harness/stats computes intervals.
import type { Ranking, Ratio, Row, RunDocument, Score, Standing, Table } from "./documents";
import { isNumber } from "./format";

/**
 * Return the document with ratios to `baseline`. A note replaces the summary, because the summary's ratios refer to the
 * recorded baseline. Throw an Error if the run does not include `baseline`.
 */
export function rebase(doc: RunDocument, baseline: string): RunDocument {
  if (!doc.run.implementations.some((info) => info.name === baseline))
    throw new Error(`${baseline} is not an implementation of this run; remove base= from the address.`);
  const note = `Ratios to ${baseline} have no intervals on a page without a server. Run ./tfb dashboard for intervals.`;
  const noteInstead = (sentences: object): [string, [string]][] =>
    Object.keys(sentences).map((metric) => [metric, [note]]);
  return {
    ...doc,
    sentences: Object.fromEntries(
      Object.entries(doc.sentences).map(([test, sentences]) => [test, Object.fromEntries(noteInstead(sentences))]),
    ),
    ranking: rebaseRanking(doc.ranking, baseline, note),
  };
}

function rebaseRanking(ranking: Ranking, baseline: string, note: string): Ranking {
  const tests = Object.entries(ranking.test_types).map(
    ([name, test]) => [name, { ...test, headline: rebaseTable(test.headline, baseline) }] as const,
  );
  return {
    ...ranking,
    reference: baseline,
    test_types: Object.fromEntries(tests),
    overall: rebaseScores(ranking.overall, baseline),
    groups: Object.fromEntries(
      Object.entries(ranking.groups).map(([group, scores]) => [group, rebaseScores(scores, baseline)]),
    ),
    notes: [...ranking.notes, note],
  };
}

/** Return the table with ratios to this baseline. */
export function rebaseTable(table: Table, baseline: string): Table {
  const reference = table.rows.find((row) => row.implementation === baseline);
  const change = (standing: Standing | null, other: Standing | null | undefined): Standing | null =>
    standing && { ...standing, to_reference: quotient(standing, other) };
  const rows = table.rows.map((row): Row => ({
    ...row,
    throughput: change(row.throughput, reference?.throughput),
    cpu_per_request: change(row.cpu_per_request, reference?.cpu_per_request),
  }));
  return { ...table, rows };
}

/**
 * Return a row's ratio to the new baseline `other`: the quotient of both rows' ratios to the recorded baseline. If a
 * ratio is missing, return the quotient of their medians. Return null if the new baseline has no value.
 */
function quotient(standing: Standing, other: Standing | null | undefined): Ratio | null {
  if (!other) return null;
  const [own, base] = [standing.to_reference?.value, other.to_reference?.value];
  const value = own && base ? own / base : standing.estimate.median / other.estimate.median;
  return isNumber(value) ? { value, low: null, high: null } : null;
}

/** Return the scores relative to this baseline, or no scores if the baseline has no score. Ranks do not change. */
function rebaseScores(scores: readonly Score[], baseline: string): Score[] {
  const base = scores.find((score) => score.implementation === baseline);
  if (!base?.throughput && !base?.cpu) return [];
  const change = (standing: Standing | null, other: Standing | null): Standing | null =>
    standing && other && rescaled(standing, other.estimate.median);
  return scores.map((score) => ({
    ...score,
    throughput: change(score.throughput, base.throughput),
    cpu: change(score.cpu, base.cpu),
    ratios: Object.fromEntries(
      Object.entries(score.ratios).map(([test, ratio]) => [test, ratio / (base.ratios[test] ?? Number.NaN)]),
    ),
  }));
}

function rescaled(standing: Standing, by: number): Standing {
  return {
    ...standing,
    estimate: { ...standing.estimate, median: standing.estimate.median / by, low: null, high: null },
  };
}
