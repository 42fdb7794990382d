// A table of a cell's trials, and the load generator's commands.
import type { Trial } from "../documents";
import { bytes, count, isNumber, micros, percent, rate, seconds, shell } from "../format";
import { describeWitness, trialName } from "../load";
import { commonFlags } from "../table";
import { CommonFlags, RowFlags } from "./basics";
import { number, PlainTable } from "./plain-table";

export function Trials({ trials }: { trials: Trial[] }) {
  const witness = describeWitness(trials);
  const flags = trials.map(trialFlags);
  const shared = commonFlags(flags);
  return (
    <section aria-labelledby="trials">
      <h3 id="trials">All trials</h3>
      <CommonFlags flags={shared} scope="table" />
      <PlainTable
        label="Trials"
        heads={[
          "Trial (process, round)",
          ...["Requests/s", "CPU µs/req", "p50", "p99", "p99.9", "Max", "Peak memory", "Errors"].map(number),
          ...["Server CPU", "Generator CPU", "Database CPU"].map(number),
          "Validity",
        ]}
        rows={trials.map((trial, index) => ({
          key: trial.id,
          class: isExcluded(trial) ? "excluded" : "",
          cells: [
            ...[trialName(trial), rate(trial.throughput), micros(trial.cpu_per_request)],
            ...["50", "99", "99.9"].map((key) => seconds(trial.latency?.percentiles[key])),
            ...[seconds(trial.latency?.max), bytes(trial.server.rss_peak)],
            { show: count(errorTotal(trial)), title: errorKinds(trial) },
            percent(trial.server.cpu_seconds / trial.duration),
            percent(trial.generator_cpu_seconds / trial.duration / Math.max(1, trial.generator_threads)),
            isNumber(trial.database_cpu_seconds) ? percent(trial.database_cpu_seconds / trial.duration) : "–",
            <>
              {isExcluded(trial) && <span class="reason">excluded </span>}
              <RowFlags flags={(flags[index] ?? []).filter((flag) => !shared.includes(flag))} />
            </>,
          ],
        }))}
      />
      {witness && <p>{witness}.</p>}
      {trials.some((trial) => trial.latency) && (
        <p class="quiet">
          How latency was measured:{" "}
          {[...new Set(trials.map((trial) => trial.latency?.basis).filter(Boolean))].join("; ")}.
        </p>
      )}
      <Commands trials={trials} />
    </section>
  );
}

/** Return the flags of a trial's validity checks, and "warm-up unsettled" if the warm-up reached its time limit. */
export function trialFlags({ validity, steady }: Trial): string[] {
  const flags = validity.flatMap(({ flag }) => flag || []);
  return steady === false ? [...flags, "warm-up unsettled"] : flags;
}

function isExcluded({ validity }: Trial): boolean {
  return validity.some((check) => check.outcome === "fail");
}

function errorTotal({ errors }: Trial): number {
  return errors.connect + errors.read + errors.write + errors.timeout + errors.status;
}

function errorKinds({ errors }: Trial): string {
  return Object.entries(errors)
    .filter(([, times]) => times > 0)
    .map(([kind, times]) => `${kind} ${times}`)
    .join(", ");
}

/** The load generator's command for each trial. Users can repeat it from the repository's root folder. */
function Commands({ trials }: { trials: Trial[] }) {
  const withCommand = trials.filter((trial) => trial.command.length > 0);
  if (withCommand.length === 0) return null;
  return (
    <details>
      <summary>Load generator commands</summary>
      <pre tabIndex={0}>
        <code>{withCommand.map((trial) => `# ${trialName(trial)}\n${shell(trial.command)}`).join("\n")}</code>
      </pre>
    </details>
  );
}
