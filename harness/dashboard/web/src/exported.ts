// What an export of a table holds: its figures in SI units, and its bars.
import type { Cells } from "./export";
import { factor, isNumber, ranks, span, times } from "./format";
import { label } from "./load";
import { type MetricSpec, shareOfBest } from "./metrics";
import type { ScoreLine } from "./overall";
import type { DrawnRow } from "./parts/drawing";
import type { Line } from "./table";

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

/** A ranking's figures. */
export function rankingCells(list: readonly Line[]): Cells {
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

/** The overall table's figures. */
export function scoreCells(list: readonly ScoreLine[], tests: readonly string[]): Cells {
  return {
    columns: ["implementation", "language", "rank_low", "rank_high", "score", "score_low", "score_high", ...tests],
    rows: list.map((line) => [
      ...[line.name, line.info?.language ?? "", line.rank?.low ?? null, line.rank?.high ?? null],
      ...[line.score, line.low, line.high],
      ...tests.map((test) => line.ratios[test] ?? null),
    ]),
  };
}

/** A ranking's bars. */
export function rankingBars(list: readonly Line[], spec: MetricSpec, best: number | null): DrawnRow[] {
  return list.map((line) => {
    const { figure, row, standing } = line;
    const ends = [shareOfBest(spec, figure?.low ?? null, best), shareOfBest(spec, figure?.high ?? null, best)].filter(
      isNumber,
    );
    return {
      rank: row.ranked ? (standing ? ranks(standing.rank) : String(line.position ?? "–")) : "–",
      name: line.name,
      text: figure
        ? [spec.figure(figure.median), span(figure.low, figure.high, spec.figure)].filter(Boolean).join(" ")
        : row.reason,
      length: shareOfBest(spec, figure?.median ?? null, best),
      low: ends.length === 2 ? Math.min(...ends) : null,
      high: ends.length === 2 ? Math.max(...ends) : null,
    };
  });
}

/** The overall table's bars. */
export function scoreBars(list: readonly ScoreLine[]): DrawnRow[] {
  const best = Math.max(...list.map((line) => line.score ?? 0));
  return list.map((line) => ({
    rank: line.rank ? ranks(line.rank) : String(line.position ?? "–"),
    name: line.name,
    text:
      line.score === null
        ? "no score"
        : [times(line.score), span(line.low, line.high, factor)].filter(Boolean).join(" "),
    length: line.score === null ? null : line.score / best,
    low: line.low === null ? null : line.low / best,
    high: line.high === null ? null : line.high / best,
  }));
}
