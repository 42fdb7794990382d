// The trials of a cell with their values and load commands.
import type { Trial } from "../documents";
import { bytes, count, isNumber, micros, percent, rate, seconds, shell } from "../format";
import { trialName } from "../load";
import { Flag } from "./basics";
import { number, PlainTable } from "./plain-table";

export function Trials({ trials }: { trials: Trial[] }) {
  return (
    <section aria-labelledby="trials">
      <h3 id="trials">All trials</h3>
      <PlainTable
        label="Trials"
        heads={[
          "Trial",
          ...["Requests/s", "CPU µs/req", "p50", "p99", "p99.9", "Max", "Peak memory", "Errors"].map(number),
          ...["Server CPU", "Generator CPU", "Database CPU"].map(number),
          "Validity",
        ]}
        rows={trials.map((trial) => ({
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
              {trial.validity
                .filter((check) => check.flag)
                .map((check) => (
                  <Flag key={check.name} flag={check.flag} tone={check.outcome === "fail" ? "fail" : "warn"} />
                ))}
              {trial.steady === false && <Flag flag="warm-up unsettled" />}
            </>,
          ],
        }))}
      />
      {trials.some((trial) => trial.latency) && (
        <p class="quiet">
          Kind of latency: {[...new Set(trials.map((trial) => trial.latency?.basis).filter(Boolean))].join("; ")}.
        </p>
      )}
      <Commands trials={trials} />
    </section>
  );
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

/** The load generator's command line of each trial, run from the repository's root. */
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
