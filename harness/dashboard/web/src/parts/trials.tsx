// The trials of one cell: their figures, and the commands that loaded it.
import type { Trial } from "../documents";
import { bytes, count, isNumber, micros, percent, rate, seconds, shell } from "../format";
import { trialName } from "../load";
import { Word } from "./basics";

export function Trials({ trials }: { trials: Trial[] }) {
  return (
    <section aria-labelledby="trials">
      <h3 id="trials">Every trial</h3>
      <div class="table-frame" tabIndex={0} role="region" aria-label="Trials">
        <table class="plain-table">
          <thead>
            <tr>
              <th scope="col">Trial</th>
              {[
                "Requests/s",
                "CPU µs/req",
                "p50",
                "p99",
                "p99.9",
                "Max",
                "Peak memory",
                "Errors",
                "Generator CPU",
                "Database CPU",
              ].map((text) => (
                <th scope="col" class="number" key={text}>
                  {text}
                </th>
              ))}
              <th scope="col">Validity</th>
            </tr>
          </thead>
          <tbody>
            {trials.map((trial) => (
              <tr key={trial.id} class={trial.gates.some((gate) => gate.outcome === "fail") ? "kept-out" : ""}>
                <th scope="row">{trialName(trial)}</th>
                <td class="number">{rate(trial.throughput)}</td>
                <td class="number">{micros(trial.cpu_per_request)}</td>
                {["50", "99", "99.9"].map((key) => (
                  <td class="number" key={key}>
                    {seconds(trial.latency?.percentiles[key])}
                  </td>
                ))}
                <td class="number">{seconds(trial.latency?.max)}</td>
                <td class="number">{bytes(trial.server.rss_peak)}</td>
                <td class="number" title={errorKinds(trial)}>
                  {count(errorTotal(trial))}
                </td>
                <td class="number">
                  {percent(trial.generator_cpu_seconds / trial.duration / Math.max(1, trial.generator_threads))}
                </td>
                <td class="number">
                  {isNumber(trial.database_cpu_seconds) ? seconds(trial.database_cpu_seconds) : "–"}
                </td>
                <td>
                  {trial.gates.some((gate) => gate.outcome === "fail") && <span class="reason">kept out </span>}
                  {trial.gates
                    .filter((gate) => gate.word)
                    .map((gate) => (
                      <Word key={gate.name} word={gate.word} tone={gate.outcome === "fail" ? "fail" : "warn"} />
                    ))}
                  {trial.steady === false && <Word word="not steady" />}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {trials.some((trial) => trial.latency) && (
        <p class="quiet">
          Kind of latency: {[...new Set(trials.map((trial) => trial.latency?.basis).filter(Boolean))].join("; ")}.
        </p>
      )}
      <Commands trials={trials} />
    </section>
  );
}

function errorTotal({ errors }: Trial): number {
  return errors.connect + errors.read + errors.write + errors.timeout + errors.status;
}

function errorKinds({ errors }: Trial): string {
  return Object.entries(errors)
    .filter(([, number]) => number > 0)
    .map(([kind, number]) => `${kind} ${number}`)
    .join(", ");
}

/** The generator's command line of every trial, as it was run from the repository's root. */
function Commands({ trials }: { trials: Trial[] }) {
  const known = trials.filter((trial) => trial.command.length > 0);
  if (known.length === 0) return null;
  return (
    <details>
      <summary>Commands that loaded it</summary>
      <pre tabIndex={0}>
        <code>{known.map((trial) => `# ${trialName(trial)}\n${shell(trial.command)}`).join("\n")}</code>
      </pre>
    </details>
  );
}
