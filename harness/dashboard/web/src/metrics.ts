// The metrics that a table can be ranked by. The one chosen drives bars, order, ratio and which end is better; another
// one (latency at a rate, capacity at a latency goal) is an entry here.
import type { Row, Standing } from "./documents";
import { bytes, count, isNumber, micros, rate, seconds, significant, UNKNOWN } from "./format";
import type { Metric } from "./route";

export interface MetricSpec {
  id: Metric;
  name: string; // as in a sentence
  column: string; // head of its column
  title: string; // what it is, in a sentence
  unit: string; // behind a figure outside of its column
  lowerIsBetter: boolean;
  always: boolean; // a column also where the table is not ranked by it
  processes: boolean; // has an estimate with intervals and ranks
  figure(value: number | null | undefined): string;
  /** Its value in a row; null where it was not measured. */
  value(row: Row): number | null;
  /** Its estimate, rank and ratios, where harness/stats has made them. */
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
    value: (row) => known(row.throughput?.estimate.median),
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
    value: (row) => known(row.cpu_per_request?.estimate.median),
    standing: (row) => row.cpu_per_request,
  },
  memory: {
    id: "memory",
    name: "peak memory",
    column: "Peak memory",
    title: "Peak resident memory of the server's processes: median of the processes",
    unit: "",
    lowerIsBetter: true,
    always: true,
    processes: false,
    figure: bytes,
    value: (row) => known(row.rss_peak),
    standing: () => null,
  },
  p50: percentile("p50", "50", "median"),
  p99: percentile("p99", "99", "99th percentile"),
  response: {
    id: "response",
    name: "response time",
    column: "Response time",
    title: "Mean response time of the closed loop; at one connection what a lone client waits: median of the processes",
    unit: "",
    lowerIsBetter: true,
    always: false,
    processes: false,
    figure: seconds,
    value: (row) => known(row.response_time),
    standing: () => null,
  },
  density: {
    id: "density",
    name: "throughput per memory",
    column: "Requests/s/MB",
    title: "Requests per second and megabyte of peak resident memory: median of the processes",
    unit: "requests/s/MB",
    lowerIsBetter: false,
    always: false,
    processes: false,
    figure: (value) => (isNumber(value) ? significant(value) : UNKNOWN),
    value: (row) => known(row.throughput_per_memory),
    standing: () => null,
  },
  threads: {
    id: "threads",
    name: "threads",
    column: "Threads",
    title: "The most threads of the server that were seen at once: median of the processes",
    unit: "threads",
    lowerIsBetter: true,
    always: false,
    processes: false,
    figure: count,
    value: (row) => known(row.threads),
    standing: () => null,
  },
};

/** A percentile of the closed loop's latency. */
function percentile(id: Metric, point: string, words: string): MetricSpec {
  return {
    id,
    name: `latency (${words})`,
    column: id,
    title: `Latency of the closed loop, ${words}; the tab Latency says how it was measured`,
    unit: "",
    lowerIsBetter: true,
    always: false,
    processes: false,
    figure: seconds,
    value: (row) => known(row.latency?.percentiles[point]?.median),
    standing: () => null,
  };
}

/** The metrics that some row has, in the order in which they are offered. */
export function measured(rows: readonly Row[]): MetricSpec[] {
  return Object.values(SPECS).filter((spec) => rows.some((row) => spec.value(row) !== null));
}

/** How much of the best a value is: 1 for the best, less for all others, whichever end is better. */
export function shareOfBest(spec: MetricSpec, value: number | null, best: number | null): number | null {
  if (!isNumber(value) || !isNumber(best) || value <= 0 || best <= 0) return null;
  return spec.lowerIsBetter ? best / value : value / best;
}

/** The best value of some rows. */
export function bestValue(spec: MetricSpec, rows: readonly Row[]): number | null {
  let best: number | null = null;
  for (const row of rows) {
    const value = row.ranked ? spec.value(row) : null;
    if (value === null || value <= 0) continue;
    if (best === null || (spec.lowerIsBetter ? value < best : value > best)) best = value;
  }
  return best;
}

function known(value: number | null | undefined): number | null {
  return isNumber(value) ? value : null;
}
