// The drill-down of one implementation x test type: every sample, its gates and seconds, verification, build, logs.
import type { CellDocument, Level, RunDocument, Sample, Verdict } from "../documents";
import { LineChart } from "../charts/lines";
import { look } from "../charts/palette";
import { bytes, count, isNumber, micros, percent, rate, seconds, significant, tick } from "../format";
import { href, useDocument, usePage } from "../hooks";
import { label, name as levelName, testName } from "../level";
import { Facts, Problems, Tabs, Waiting, Word } from "../parts/basics";
import { LogView } from "../parts/log-view";
import { SourceLink } from "../parts/source-link";

export function CellPage({ document }: { document: RunDocument }) {
  const { source, route, go } = usePage();
  const { run, ranking } = document;
  const info = run.implementations.find((item) => item.name === route.implementation);
  const test = route.test || info?.test_types[0] || "";
  const loaded = useDocument(`cell ${route.run} ${route.implementation} ${test}`, () =>
    source.cell(route.run, route.implementation, test),
  );
  const row = ranking.test_types[test]?.headline.rows.find((item) => item.implementation === route.implementation);
  const tests = info?.test_types.length ? info.test_types : [test];
  return (
    <article class="cell">
      <p class="back">
        <a href={href({ page: "run", run: route.run, test })}>← All implementations</a>
      </p>
      <h2>
        <bdi>{route.implementation}</bdi>
      </h2>
      {info && (
        <Facts
          facts={[
            ["Language", <bdi>{info.language}</bdi>],
            ["Platform", <bdi>{info.platform}</bdi>],
            ["Web server", <bdi>{info.webserver}</bdi>],
            ["Database", <bdi>{info.database}</bdi>],
            ["ORM", <bdi>{info.orm}</bdi>],
            ["Classification", <bdi>{[info.classification, info.approach].filter(Boolean).join(", ")}</bdi>],
            ["Tags", info.tags.length ? <bdi>{info.tags.join(", ")}</bdi> : ""],
            ["Notes", info.notes ? <bdi>{info.notes}</bdi> : ""],
            ["Source", info.folder ? <SourceLink document={document} info={info} /> : ""],
            [
              "History",
              source.offline ? (
                ""
              ) : (
                <a href={href({ page: "history", implementation: route.implementation, test })}>over all runs</a>
              ),
            ],
          ]}
        />
      )}
      <Tabs
        label="Test types"
        panel="cell-panel"
        chosen={test}
        onChoose={(id) => go({ test: id, level: "", replicate: null })}
        tabs={tests.map((id) => ({ id, label: testName(id) }))}
      />
      <div id="cell-panel" role="tabpanel" aria-label={testName(test)}>
        {row && (
          <p class="lead">
            {row.throughput ? (
              <>
                <strong>{rate(row.throughput.estimate.median)}</strong> requests/s
                {isNumber(row.throughput.estimate.low) &&
                  ` [${rate(row.throughput.estimate.low)}, ${rate(row.throughput.estimate.high)}]`}
              </>
            ) : (
              <strong>Not measured</strong>
            )}
            {row.cpu_per_request && (
              <>
                {" "}
                · <strong>{micros(row.cpu_per_request.estimate.median)} µs</strong> CPU a request
                {isNumber(row.cpu_per_request.estimate.low) &&
                  ` [${micros(row.cpu_per_request.estimate.low)}, ${micros(row.cpu_per_request.estimate.high)}]`}
              </>
            )}
            {row.level && <> · at {levelName(row.level)}</>}
            {row.reason && (
              <span class="reason">
                {" "}
                · <bdi>{row.reason}</bdi>
              </span>
            )}
            {row.dropped > 0 && (
              <>
                {" "}
                · {row.dropped} of {row.samples} samples kept out by gates
              </>
            )}
          </p>
        )}
        {loaded.state === "ready" ? (
          <Evidence cell={loaded.value} document={document} headline={row?.level ?? null} />
        ) : (
          <Waiting loaded={loaded} what="the samples" />
        )}
      </div>
    </article>
  );
}

function Evidence({ cell, document, headline }: { cell: CellDocument; document: RunDocument; headline: Level | null }) {
  const { route, go } = usePage();
  const levels = [...new Map(cell.samples.map((sample) => [label(sample.level), sample.level])).values()];
  const chosen =
    levels.find((level) => label(level) === (route.level || (headline ? label(headline) : ""))) ?? levels.at(-1);
  const samples = cell.samples.filter((sample) => chosen && label(sample.level) === label(chosen));
  const info = document.run.implementations.find((item) => item.name === cell.implementation);
  const extra = new Set(document.problems.map((problem) => problem.message));
  return (
    <>
      <Problems problems={cell.problems.filter((problem) => !extra.has(problem.message))} />
      {cell.samples.length === 0 && (
        <p class="empty">
          There is no sample of this test type
          {document.run.profile === "TechEmpower" ? " in a TechEmpower results file" : ""}.
        </p>
      )}
      {levels.length > 1 && chosen && (
        <div class="toolbar">
          <label>
            <span>Level</span>
            <select value={label(chosen)} onChange={(event) => go({ level: event.currentTarget.value })}>
              {levels.map((level) => (
                <option key={label(level)} value={label(level)}>
                  {levelName(level)}
                </option>
              ))}
            </select>
          </label>
        </div>
      )}
      {samples.length > 0 && <Samples samples={samples} />}
      {samples.length > 0 && <Seconds samples={samples} all={cell.samples} />}
      {samples.length > 0 && <Gates samples={samples} />}
      <Verification verdicts={cell.verdicts} samples={cell.samples} />
      <section aria-labelledby="starts">
        <h3 id="starts">Starts, build and logs</h3>
        {info?.build && (
          <Facts
            facts={[
              ["Build", `${info.build.status}${info.build.reason ? `: ${info.build.reason}` : ""}`],
              ["Took", isNumber(info.build.duration) ? seconds(info.build.duration) : ""],
              [
                "Tools",
                <bdi>
                  {Object.entries(info.build.tools)
                    .map(([tool, version]) => `${tool} ${version}`)
                    .join(", ")}
                </bdi>,
              ],
              ["Image", info.build.image ? <bdi>{info.build.image}</bdi> : ""],
              ["Digest", info.build.image_digest ? <code>{info.build.image_digest}</code> : ""],
            ]}
          />
        )}
        {(info?.build?.commands.length ?? 0) > 0 && (
          <pre tabIndex={0}>
            <code>{info?.build?.commands.join("\n")}</code>
          </pre>
        )}
        {info?.build?.log && <LogView run={document.run.run_id} path={info.build.log} label="Build log" />}
        {cell.replicates.map((replicate) => (
          <div key={`${replicate.block} ${replicate.replicate}`} class="start">
            <p>
              Replicate {replicate.replicate}: {replicate.status}
              {isNumber(replicate.first_answer) && `, first answer after ${seconds(replicate.first_answer)}`}
              {replicate.reason && (
                <>
                  : <bdi>{replicate.reason}</bdi>
                </>
              )}
            </p>
            {replicate.log && (
              <LogView
                run={document.run.run_id}
                path={replicate.log}
                label={`Log of replicate ${replicate.replicate}`}
              />
            )}
          </div>
        ))}
      </section>
    </>
  );
}

function Samples({ samples }: { samples: Sample[] }) {
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
              <th scope="col">Gates</th>
            </tr>
          </thead>
          <tbody>
            {samples.map((sample) => (
              <tr key={sample.id} class={sample.gates.some((gate) => gate.outcome === "fail") ? "kept-out" : ""}>
                <th scope="row">
                  {sample.replicate}
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
                    {seconds(sample.latency?.percentiles[key])}
                  </td>
                ))}
                <td class="number">{seconds(sample.latency?.max)}</td>
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
      {samples.some((sample) => sample.latency) && (
        <p class="quiet">
          Kind of latency: {[...new Set(samples.map((sample) => sample.latency?.basis).filter(Boolean))].join("; ")}.
        </p>
      )}
    </section>
  );
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

const SHORTEST_WINDOW = 0.25; // seconds

function Seconds({ samples, all }: { samples: Sample[]; all: Sample[] }) {
  const { route, go } = usePage();
  const chosen = route.replicate === null ? samples : samples.filter((sample) => sample.replicate === route.replicate);
  const drawn = chosen.slice(0, 16);
  // The warm-up is carried by the first sample after it, which may be one of another level.
  const warmUp =
    drawn.length === 1
      ? (drawn[0]?.warm_up ?? all.find((sample) => sample.replicate === drawn[0]?.replicate && sample.warm_up)?.warm_up)
      : null;
  const before = warmUp?.duration ?? 0;
  const series = drawn.map((sample, index) => ({
    name: `replicate ${sample.replicate}${sample.attempt ? `, attempt ${sample.attempt + 1}` : ""}`,
    look: look(index),
    points: [
      ...(warmUp?.windows ?? []).map((window) => ({
        x: window.start - before + window.duration / 2,
        y: perSecond(window.responses, window.duration),
      })),
      ...sample.windows.map((window) => ({
        x: window.start + window.duration / 2,
        y: perSecond(window.responses, window.duration),
      })),
    ],
  }));
  if (series.every((one) => one.points.length === 0)) return null;
  return (
    <section aria-label="Second by second">
      <div class="toolbar">
        <label>
          <span>Seconds of</span>
          <select
            value={route.replicate ?? ""}
            onChange={(event) =>
              go({ replicate: event.currentTarget.value === "" ? null : Number(event.currentTarget.value) })
            }
          >
            <option value="">all replicates</option>
            {[...new Set(samples.map((sample) => sample.replicate))].map((replicate) => (
              <option key={replicate} value={replicate}>
                replicate {replicate}, with its warm-up
              </option>
            ))}
          </select>
        </label>
      </div>
      <LineChart
        title="Second by second"
        heading="h3"
        note={
          warmUp
            ? `Warm-up: ${seconds(warmUp.duration)}, ${count(warmUp.requests)} requests${isNumber(warmUp.seconds_to_steady) ? `, steady after ${seconds(warmUp.seconds_to_steady)}` : ""}${warmUp.steady === false ? ", not steady at its end" : ""}${isNumber(warmUp.worst_latency) ? `, slowest response ${seconds(warmUp.worst_latency)}` : ""}.`
            : "Responses of each second, from the sockets' byte counters. Choose one replicate to see its warm-up."
        }
        series={series}
        xLabel="seconds since the load began"
        yLabel="requests/s"
        xScale="linear"
        yScale="linear"
        formatX={(value) => `${significant(value)} s`}
        formatXTick={tick}
        formatY={rate}
        formatTick={tick}
        spans={warmUp ? [{ from: -before, to: 0, name: "warm-up" }] : []}
        marks={drawn.length === 1}
        height={300}
        columns={["replicate", "seconds", "requests_per_second"]}
      />
    </section>
  );
}

/** Responses a second of a window; none for the sliver at a sample's end, which holds too few to say anything. */
function perSecond(responses: number | null, duration: number): number | null {
  return isNumber(responses) && duration > SHORTEST_WINDOW ? responses / duration : null;
}

function Gates({ samples }: { samples: Sample[] }) {
  const names = [...new Set(samples.flatMap((sample) => sample.gates.map((gate) => gate.name)))];
  if (names.length === 0) return null;
  return (
    <details>
      <summary>Gates: what each saw, and what it allows</summary>
      <div class="table-frame" tabIndex={0} role="region" aria-label="Gates">
        <table class="plain-table">
          <thead>
            <tr>
              <th scope="col">Gate</th>
              <th scope="col" class="number">
                Allows
              </th>
              {samples.map((sample) => (
                <th scope="col" class="number" key={sample.id}>
                  r{sample.replicate}
                  {sample.attempt ? `.${sample.attempt}` : ""}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {names.map((name) => (
              <tr key={name}>
                <th scope="row">
                  <bdi>{name}</bdi>
                </th>
                <td class="number">
                  {value(samples.flatMap((sample) => sample.gates).find((gate) => gate.name === name)?.threshold)}
                </td>
                {samples.map((sample) => {
                  const gate = sample.gates.find((item) => item.name === name);
                  return (
                    <td class={`number outcome-${gate?.outcome ?? "pass"}`} key={sample.id}>
                      {gate ? `${value(gate.value)}${gate.outcome === "pass" ? "" : ` ${gate.outcome}`}` : "–"}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

function value(number: number | null | undefined): string {
  return isNumber(number) ? significant(number) : "–";
}

function Verification({ verdicts, samples }: { verdicts: Verdict[]; samples: Sample[] }) {
  const findings = verdicts.flatMap((verdict) =>
    verdict.results.filter((result) => result.outcome !== "pass").map((result) => ({ verdict, result })),
  );
  const probed = samples.flatMap((sample) => sample.probe_failures.map((result) => ({ sample, result })));
  const checks = verdicts.reduce((sum, verdict) => sum + verdict.results.length, 0);
  return (
    <section aria-labelledby="verification">
      <h3 id="verification">Verification</h3>
      {verdicts.length === 0 ? (
        <p>There is no verdict of this test type.</p>
      ) : (
        <p>
          {count(checks)} checks over {verdicts.length} replicate{verdicts.length === 1 ? "" : "s"}:{" "}
          {findings.length === 0 ? "all passed." : `${findings.length} did not pass.`}
        </p>
      )}
      {[
        ...findings.map(({ verdict, result }) => ({ where: `replicate ${verdict.replicate}`, result })),
        ...probed.map(({ sample, result }) => ({
          where: `under load, replicate ${sample.replicate}, ${label(sample.level)}`,
          result,
        })),
      ].map(({ where, result }, index) => (
        <div class={`finding ${result.outcome}`} key={index}>
          <p>
            <strong>{result.outcome}</strong> · <code>{result.check}</code> · rule {result.rule} · {where}
          </p>
          {result.message && (
            <p>
              <bdi>{result.message}</bdi>
            </p>
          )}
          {(result.expected !== null || result.actual !== null) && (
            <dl class="diff">
              <div>
                <dt>Expected</dt>
                <dd>
                  <pre tabIndex={0}>{result.expected ?? "–"}</pre>
                </dd>
              </div>
              <div>
                <dt>Got</dt>
                <dd>
                  <pre tabIndex={0}>{result.actual ?? "–"}</pre>
                </dd>
              </div>
            </dl>
          )}
        </div>
      ))}
      {verdicts.length > 0 && (
        <details>
          <summary>All checks</summary>
          <ul class="checks">
            {verdicts.flatMap((verdict) =>
              verdict.results.map((result, index) => (
                <li key={`${verdict.replicate} ${index}`} class={`outcome-${result.outcome}`}>
                  r{verdict.replicate} {result.outcome}: <code>{result.check}</code> ({result.rule})
                </li>
              )),
            )}
          </ul>
        </details>
      )}
    </section>
  );
}
