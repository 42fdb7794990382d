// What else differs between two runs, besides the implementations. Pure.
import type { RunInfo } from "../documents";

export interface Difference {
  name: string;
  before: string;
  after: string;
  weighs: boolean; // throughputs of the two runs cannot be compared without thinking of it
}

type Read = (run: RunInfo) => string;

/** The facts of two runs that differ. */
export function differing(before: RunInfo, after: RunInfo): Difference[] {
  const facts: [string, Read, boolean][] = [
    ["Host", (run) => run.machine.hostname, true],
    ["CPU", (run) => `${run.machine.cpu_model}, ${run.machine.cpus_online}`, true],
    ["Kernel", (run) => run.machine.kernel, true],
    ["Governor", (run) => run.machine.governor ?? "unknown", true],
    ["Turbo", (run) => String(run.machine.turbo ?? "unknown"), true],
    ["Machine grade", (run) => run.machine.grade, true],
    ["Profile", (run) => run.profile, true],
    ["Runtime", (run) => run.runtime, true],
    ["Revision", (run) => `${run.revision ?? "unknown"}${run.dirty ? " with local changes" : ""}`, false],
    ...[...new Set([...Object.keys(before.tools), ...Object.keys(after.tools)])]
      .sort()
      .map((tool): [string, Read, boolean] => [tool, (run) => run.tools[tool] ?? "–", true]),
  ];
  return facts
    .map(([name, read, weighs]) => ({ name, before: read(before), after: read(after), weighs }))
    .filter((item) => item.before !== item.after);
}
