// The metrics by which a table can be ranked. The selected metric determines the order, the bars and the ratios.
import type { Row, Standing } from "./documents";
import { bytes, count, isNumber, micros, rate, seconds, significant, times, UNKNOWN } from "./format";
import type { Metric } from "./route";

export interface MetricSpec {
  id: Metric;
  name: string; // name in sentences
  column: string; // column header
  title: string; // tooltip that explains the metric
  unit: string; // appended to values outside the table
  tickUnit?: number; // axis ticks are round multiples of this number
  lowerIsBetter: boolean;
  always: boolean; // whether the column is shown even when a different metric is selected
  processes: boolean; // whether harness/stats computes intervals and ranks for the metric
  figure(value: number | null | undefined): string;
  /** Return the value of a row, or null if it was not measured. */
  value(row: Row): number | null;
  /** Return the estimate, rank and ratios from harness/stats, or null if there are no estimates. */
  standing(row: Row): Standing | null;
}

export const SPECS: Record<Metric, MetricSpec> = {
  throughput: {
    id: "throughput",
    name: "throughput",
    column: "Requests/s",
    title: "Completed 2xx responses per second: median of the processes",
    unit: "requests/s",
    lowerIsBetter: false,
    always: true,
    processes: true,
    figure: rate,
    value: (row) => finiteOrNull(row.throughput?.estimate.median),
    standing: (row) => row.throughput,
  },
  cpu: {
    id: "cpu",
    name: "CPU per request",
    column: "CPU µs/req",
    title: "The server's CPU time per response, in microseconds: median of the processes",
    unit: "µs of CPU",
    lowerIsBetter: true,
    always: true,
    processes: true,
    figure: micros,
    value: (row) => finiteOrNull(row.cpu_per_request?.estimate.median),
    standing: (row) => row.cpu_per_request,
  },
  memory: {
    id: "memory",
    name: "peak memory",
    column: "Peak memory",
    title: "Peak resident memory of the server's processes: median of the processes",
    unit: "",
    tickUnit: 2 ** 20,
    lowerIsBetter: true,
    always: true,
    processes: false,
    figure: bytes,
    value: (row) => finiteOrNull(row.rss_peak),
    standing: () => null,
  },
  p50: percentile("p50", "50", "median"),
  p99: percentile("p99", "99", "99th percentile"),
  response: {
    id: "response",
    name: "response time",
    column: "Response time",
    title:
      "Mean response time in a closed loop (with one connection, how long a single client waits): median of the processes",
    unit: "",
    lowerIsBetter: true,
    always: false,
    processes: false,
    figure: seconds,
    value: (row) => finiteOrNull(row.response_time),
    standing: () => null,
  },
  density: {
    id: "density",
    name: "throughput per memory",
    column: "Requests/s/MB",
    title: "Requests per second per megabyte of peak resident memory: median of the processes",
    unit: "requests/s/MB",
    lowerIsBetter: false,
    always: false,
    processes: false,
    figure: (value) => (isNumber(value) ? significant(value) : UNKNOWN),
    value: (row) => finiteOrNull(row.throughput_per_memory),
    standing: () => null,
  },
  threads: {
    id: "threads",
    name: "threads",
    column: "Threads",
    title: "Maximum number of server threads: median of the processes",
    unit: "threads",
    lowerIsBetter: true,
    always: false,
    processes: false,
    figure: count,
    value: (row) => finiteOrNull(row.threads),
    standing: () => null,
  },
  floor: {
    id: "floor",
    name: "CPU per request relative to the floor",
    column: "CPU × floor",
    title: "CPU per request as a multiple of the floor, a minimal server that shows the machine's lower bound",
    unit: "",
    lowerIsBetter: true,
    always: true,
    processes: false,
    figure: times,
    value: (row) => finiteOrNull(row.cpu_to_floor),
    standing: () => null,
  },
};

/** Create the metric for a latency percentile in a closed loop. */
function percentile(id: Metric, point: string, words: string): MetricSpec {
  return {
    id,
    name: `latency (${words})`,
    column: id,
    title: `Closed-loop latency, ${words}; the Latency tab describes the measurement`,
    unit: "",
    lowerIsBetter: true,
    always: false,
    processes: false,
    figure: seconds,
    value: (row) => finiteOrNull(row.latency?.percentiles[point]?.median),
    standing: () => null,
  };
}

/** Return the metrics with at least one value, in display order. */
export function availableMetrics(rows: readonly Row[]): MetricSpec[] {
  return Object.values(SPECS).filter((spec) => rows.some((row) => spec.value(row) !== null));
}

/** Return how good a value is relative to the best: 1 for the best value, less for other values. */
export function shareOfBest(spec: MetricSpec, value: number | null, best: number | null): number | null {
  if (!isNumber(value) || !isNumber(best) || value <= 0 || best <= 0) return null;
  return spec.lowerIsBetter ? best / value : value / best;
}

/** Return the best value among the ranked rows. */
export function bestValue(spec: MetricSpec, rows: readonly Row[]): number | null {
  let best: number | null = null;
  for (const row of rows) {
    const value = row.ranked ? spec.value(row) : null;
    if (value === null || value <= 0) continue;
    if (best === null || (spec.lowerIsBetter ? value < best : value > best)) best = value;
  }
  return best;
}

function finiteOrNull(value: number | null | undefined): number | null {
  return isNumber(value) ? value : null;
}
