// Converts tables for export: to cells in SI units, or to the bars of a chart.
import type { Cells } from "./export";
import { factor, isNumber, ranks, span, times } from "./format";
import { label } from "./load";
import { type MetricSpec, shareOfBest } from "./metrics";
import type { ScoreRow } from "./scores";
import type { BarRow } from "./parts/bar-drawing";
import type { RankedRow } from "./table";

const COLUMNS = [
  ...["implementation", "language", "platform", "load", "ranked", "rank_low", "rank_high", "tie_group"],
  ...[
    "throughput",
    "throughput_low",
    "throughput_high",
    "processes",
    "share_of_best",
    "ratio",
    "ratio_low",
    "ratio_high",
  ],
  ...["latency_p50_seconds", "latency_p99_seconds"],
  ...["cpu_seconds_per_request", "cpu_low", "cpu_high", "rss_peak_bytes", "response_time_seconds"],
  ...["requests_per_second_per_megabyte", "threads", "startup_seconds", "errors", "notes"],
];

/** Convert a ranking to cells, with a row for each implementation. */
export function rankingCells(list: readonly RankedRow[]): Cells {
  return {
    columns: COLUMNS,
    rows: list.map(({ name, row, info, standing, ratio, share }) => {
      const throughput = row.throughput?.estimate;
      const cpu = row.cpu_per_request?.estimate;
      return [
        ...[name, info?.language ?? "", info?.platform ?? "", row.load ? label(row.load) : "", row.ranked],
        ...[standing?.rank.low ?? null, standing?.rank.high ?? null, standing?.tie_group ?? null],
        ...[throughput?.median ?? null, throughput?.low ?? null, throughput?.high ?? null],
        ...[throughput?.processes ?? null, share],
        ...[ratio?.value ?? null, ratio?.low ?? null, ratio?.high ?? null],
        ...[row.latency?.percentiles["50"]?.median ?? null, row.latency?.percentiles["99"]?.median ?? null],
        ...[cpu?.median ?? null, cpu?.low ?? null, cpu?.high ?? null],
        ...[row.rss_peak, row.response_time, row.throughput_per_memory, row.threads],
        ...[row.startup_time, row.errors, [row.reason, ...row.flags].filter(Boolean).join("; ")],
      ];
    }),
  };
}

/** Convert the overall table to cells. The columns of the test types contain values if `absolute`, otherwise ratios. */
export function scoreCells(list: readonly ScoreRow[], tests: readonly string[], absolute: boolean): Cells {
  return {
    columns: ["implementation", "language", "rank_low", "rank_high", "score", "score_low", "score_high", ...tests],
    rows: list.map((entry) => [
      ...[entry.name, entry.info?.language ?? "", entry.rank?.low ?? null, entry.rank?.high ?? null],
      ...[entry.score, entry.low, entry.high],
      ...tests.map((test) => (absolute ? entry.values : entry.ratios)[test] ?? null),
    ]),
  };
}

/** Convert a ranking to bars. */
export function rankingBars(list: readonly RankedRow[], spec: MetricSpec, best: number | null): BarRow[] {
  return list.map((entry) => {
    const { figure, row, standing } = entry;
    const ends = [shareOfBest(spec, figure?.low ?? null, best), shareOfBest(spec, figure?.high ?? null, best)].filter(
      isNumber,
    );
    return {
      rank: row.ranked ? (standing ? ranks(standing.rank) : String(entry.position ?? "–")) : "–",
      name: entry.name,
      text: figure
        ? [spec.figure(figure.median), span(figure.low, figure.high, spec.figure)].filter(Boolean).join(" ")
        : row.reason,
      length: shareOfBest(spec, figure?.median ?? null, best),
      low: ends.length === 2 ? Math.min(...ends) : null,
      high: ends.length === 2 ? Math.max(...ends) : null,
    };
  });
}

/** Convert the overall table to bars. */
export function scoreBars(list: readonly ScoreRow[]): BarRow[] {
  const best = Math.max(...list.map((entry) => entry.score ?? 0));
  return list.map((entry) => ({
    rank: entry.rank ? ranks(entry.rank) : String(entry.position ?? "–"),
    name: entry.name,
    text:
      entry.score === null
        ? "no score"
        : [times(entry.score), span(entry.low, entry.high, factor)].filter(Boolean).join(" "),
    length: entry.score === null ? null : entry.score / best,
    low: entry.low === null ? null : entry.low / best,
    high: entry.high === null ? null : entry.high / best,
  }));
}
