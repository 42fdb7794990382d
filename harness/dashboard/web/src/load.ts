// Names of loads, test types and trials. URLs and Python use short labels, and the page shows longer names.
import type { ClosedLoop, OpenLoop, Scenario, Trial } from "./documents";
import { percent } from "./format";
import titles from "./test-titles.json";

export type Load = ClosedLoop | OpenLoop | Scenario;

/** Return the label, as in harness/records/loads.py: ``c64``, ``c64 q20``, ``c256 p16``, ``1000/s c64``, ``x8``. */
export function label(load: Load): string {
  if (load.kind === "scenario") return `x${load.factor}`;
  return [
    load.kind === "open" ? `${load.rate.toFixed(0)}/s` : "",
    `c${load.connections}`,
    load.queries === null ? "" : `q${load.queries}`,
    load.depth > 1 ? `p${load.depth}` : "",
    load.kind === "closed" && load.close_after ? `r${load.close_after}` : "",
  ]
    .filter(Boolean)
    .join(" ");
}

/** Return the display name: ``64 connections``, ``20 queries``, ``1000 requests/s``. */
export function name(load: Load): string {
  if (load.kind === "scenario") return `×${load.factor} arrivals`;
  if (load.kind === "open") return `${load.rate.toFixed(0)} requests/s`;
  if (load.queries !== null) return load.queries === 1 ? "1 query" : `${load.queries} queries`;
  const depth = load.kind === "closed" && load.depth > 1 ? ` × ${load.depth}` : ""; // requests in flight
  return `${load.connections} ${load.close_after ? "short " : ""}connections${depth}`;
}

/** Return the parameter that varies between a test type's loads. */
export function axis(loads: readonly Load[]): "queries" | "connections" {
  return loads.some((load) => load.queries !== null) ? "queries" : "connections";
}

/** Return a load's value of `parameter`, which is the load's position on the axis. */
export function position(load: Load, parameter: "queries" | "connections"): number {
  return parameter === "queries" ? (load.queries ?? 0) : load.connections;
}

/** Return a trial's name within the cell: "P1 R3" for process 1 and round 3, or "P1 R1, check by wrk" for a witness. */
export function trialName(trial: Trial): string {
  const purposes = { measure: "", witness: `check by ${trial.generator}`, share: "", common: "", search: "search" };
  return [`P${trial.process + 1} R${trial.round + 1}`, purposes[trial.purpose]].filter(Boolean).join(", ");
}

/**
 * Describe how well witnesses (trials with the independent load generator) agree with the other trials, for example
 * ``wrk, independent check: CPU per request agrees within 3 %``. Each witness is compared with the last trial before it
 * at the same load. Return null if there are no witnesses.
 */
export function describeWitness(trials: readonly Trial[]): string | null {
  const witnesses = trials.filter((trial) => trial.purpose === "witness");
  const differences = witnesses.flatMap((witness) => {
    const compared = trials
      .filter((trial) => trial.purpose === "measure" && label(trial.load) === label(witness.load))
      .filter((trial) => trial.process === witness.process && trial.started_at < witness.started_at)
      .sort((a, b) => a.started_at - b.started_at)
      .at(-1);
    const [own, other] = [witness.cpu_per_request, compared?.cpu_per_request];
    return own && other ? [Math.abs(own / other - 1)] : [];
  });
  const generator = witnesses[0]?.generator;
  if (!generator) return null;
  if (differences.length === 0) return `${generator}, independent check: CPU per request is unknown`;
  const disagrees = witnesses.some((trial) => trial.validity.some(({ flag }) => flag === DISAGREEMENT));
  const largest = percent(Math.max(...differences));
  return `${generator}, independent check: CPU per request ${disagrees ? "differs by" : "agrees within"} ${largest}`;
}

const DISAGREEMENT = "the two generators disagree"; // flag set by the validity check that compares the generators

const TITLES: Partial<Record<string, string>> = titles;

/** Return the display name of a test type. */
export function testName(testType: string): string {
  return (Object.hasOwn(TITLES, testType) && TITLES[testType]) || testType;
}
