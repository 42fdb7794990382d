// The samples of one cell: their figures, and the commands that loaded it.
import type { Latency, Sample } from "../documents";
import { bytes, count, isNumber, micros, percent, rate, seconds, shell } from "../format";
import { Word } from "./basics";

export function Samples({ samples }: { samples: Sample[] }) {
  return (
    <section aria-labelledby="samples">
      <h3 id="samples">Every sample</h3>
      <div class="table-frame" tabIndex={0} role="region" aria-label="Samples">
        <table class="plain-table">
          <thead>
            <tr>
              <th scope="col">Replicate</th>
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
            {samples.map((sample) => (
              <tr key={sample.id} class={sample.gates.some((gate) => gate.outcome === "fail") ? "kept-out" : ""}>
                <th scope="row">
                  {sample.replicate + 1}
                  {sample.attempt > 0 && `, attempt ${sample.attempt + 1}`}
                  {sample.duet_partner && (
                    <>
                      , beside <bdi>{sample.duet_partner}</bdi>
                    </>
                  )}
                </th>
                <td class="number">{rate(sample.throughput)}</td>
                <td class="number">{micros(sample.cpu_per_request)}</td>
                {["50", "99", "99.9"].map((key) => (
                  <td class="number" key={key}>
                    {seconds(shown(sample)?.percentiles[key])}
                  </td>
                ))}
                <td class="number">{seconds(shown(sample)?.max)}</td>
                <td class="number">{bytes(sample.server.rss_peak)}</td>
                <td class="number" title={errorKinds(sample)}>
                  {count(errorTotal(sample))}
                </td>
                <td class="number">
                  {percent(sample.generator_cpu_seconds / sample.duration / Math.max(1, sample.generator_threads))}
                </td>
                <td class="number">
                  {isNumber(sample.database_cpu_seconds) ? seconds(sample.database_cpu_seconds) : "–"}
                </td>
                <td>
                  {sample.gates.some((gate) => gate.outcome === "fail") && <span class="reason">kept out </span>}
                  {sample.gates
                    .filter((gate) => gate.word)
                    .map((gate) => (
                      <Word key={gate.name} word={gate.word} tone={gate.outcome === "fail" ? "fail" : "warn"} />
                    ))}
                  {sample.steady === false && <Word word="not steady" />}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {samples.some(shown) && (
        <p class="quiet">
          Kind of latency: {[...new Set(samples.map((sample) => shown(sample)?.basis).filter(Boolean))].join("; ")}. A
          sample with an audited load beside it shows that one's service times; wrk's are altered by its correction.
        </p>
      )}
      <Commands samples={samples} />
    </section>
  );
}

/** The latency beside a sample: as it was where there is an audited load, else as wrk alters it. */
function shown(sample: Sample): Latency | null {
  return sample.audited?.latency ?? sample.latency;
}

function errorTotal({ errors }: Sample): number {
  return errors.connect + errors.read + errors.write + errors.timeout + errors.status;
}

function errorKinds({ errors }: Sample): string {
  return Object.entries(errors)
    .filter(([, number]) => number > 0)
    .map(([kind, number]) => `${kind} ${number}`)
    .join(", ");
}

/** The generator's command line of every sample, as it was run from the repository's root. */
function Commands({ samples }: { samples: Sample[] }) {
  const known = samples.filter((sample) => sample.command.length > 0);
  if (known.length === 0) return null;
  return (
    <details>
      <summary>Commands that loaded it</summary>
      <pre tabIndex={0}>
        <code>
          {known
            .map(
              (sample) =>
                `# replicate ${sample.replicate + 1}, attempt ${sample.attempt + 1}\n${shell(sample.command)}`,
            )
            .join("\n")}
        </code>
      </pre>
    </details>
  );
}
