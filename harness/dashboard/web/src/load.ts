// Names of loads, test types and trials: short labels as in URLs and in Python, and names for display.
import type { ClosedLoop, OpenLoop, Scenario, Trial } from "./documents";

export type Load = ClosedLoop | OpenLoop | Scenario;

/** ``c64``, ``c64 q20``, ``c256 p16``, ``1000/s c64``, ``x8``: the same as ``label`` in harness/records/loads.py. */
export function label(load: Load): string {
  if (load.kind === "scenario") return `x${load.factor}`;
  return [
    load.kind === "open" ? `${load.rate.toFixed(0)}/s` : "",
    `c${load.connections}`,
    load.queries === null ? "" : `q${load.queries}`,
    load.depth > 1 ? `p${load.depth}` : "",
  ]
    .filter(Boolean)
    .join(" ");
}

/** Return a name for display: ``64 connections``, ``20 queries``, ``1000 requests/s``. */
export function name(load: Load): string {
  if (load.kind === "scenario") return `×${load.factor} arrivals`;
  if (load.kind === "open") return `${load.rate.toFixed(0)} requests/s`;
  if (load.queries !== null) return load.queries === 1 ? "1 query" : `${load.queries} queries`;
  return `${load.connections} connections`;
}

/** Return the parameter that the loads of a test type vary. */
export function axis(loads: readonly Load[]): "queries" | "connections" {
  return loads.some((load) => load.queries !== null) ? "queries" : "connections";
}

/** Return the position of a load on that axis. */
export function position(load: Load, parameter: "queries" | "connections"): number {
  return parameter === "queries" ? (load.queries ?? 0) : load.connections;
}

/** Return the name of a trial within its cell: ``process 2``, ``process 1, round 3``, ``process 1, by wrk``. */
export function trialName(trial: Trial): string {
  const purposes = { measure: "", witness: `by ${trial.generator}`, share: "", common: "", search: "search" };
  const parts = [
    `process ${trial.process + 1}`,
    trial.round ? `round ${trial.round + 1}` : "",
    purposes[trial.purpose],
  ];
  return parts.filter(Boolean).join(", ");
}

const TEST_NAMES: Record<string, string> = {
  json: "JSON",
  plaintext: "Plaintext",
  db: "Single query",
  query: "Multiple queries",
  fortune: "Fortunes",
  update: "Updates",
  "cached-query": "Cached queries",
  hello: "Hello",
  delay: "Delay",
  "fan-out": "Fan-out",
  order: "Order service",
};

/** Return the display name of a test type. */
export function testName(testType: string): string {
  return (Object.hasOwn(TEST_NAMES, testType) ? TEST_NAMES[testType] : undefined) ?? testType;
}
