// The page of an implementation and a test type: trials, validity checks, time series, verification, build and logs.
import { useEffect } from "preact/hooks";
import type { CellDocument, RunDocument } from "../documents";
import { isNumber, micros, rate, seconds } from "../format";
import { href, useDocument, usePage } from "../hooks";
import { label, type Load, name as loadName, testName } from "../load";
import { Facts, Problems, Waiting } from "../parts/basics";
import { ValidityChecks, Verification } from "../parts/checks";
import { LogView } from "../parts/log-view";
import { Trials } from "../parts/trials";
import { TimeSeries } from "../parts/time-series";
import { SourceLink } from "../parts/source-link";
import { Tabs } from "../parts/tabs";

/** Return a metadata value as an element, or an empty string if it is missing. */
function factOrEmpty(fact: string) {
  return fact && fact !== "None" ? <bdi>{fact}</bdi> : "";
}

export function CellPage({ doc, version }: { doc: RunDocument; version: number }) {
  const { source, route, go } = usePage();
  const { run, ranking } = doc;
  const info = run.implementations.find((item) => item.name === route.implementation);
  const test = route.test || info?.test_types[0] || "";
  const loaded = useDocument(`cell ${route.run} ${route.implementation} ${test}#${version}`, () =>
    source.cell(route.run, route.implementation, test),
  );
  useEffect(() => scrollTo(0, 0), [route.implementation]); // the table may have been scrolled down
  const row = ranking.test_types[test]?.headline.rows.find((item) => item.implementation === route.implementation);
  const declared = info?.test_types.length ? info.test_types : [test];
  // Skip declared test types that this run does not include.
  const tests = declared.filter((kind) => kind === test || kind in doc.run.loads || kind in ranking.test_types);
  return (
    <article class="cell">
      <p class="back">
        <a href={href({ ...route, view: "table", test, implementation: "", process: null })}>← All implementations</a>
      </p>
      <h2>
        <bdi>{route.implementation}</bdi>
      </h2>
      {info && (
        <Facts
          facts={[
            ["Language", factOrEmpty(info.language)],
            ["Platform", factOrEmpty(info.platform)],
            ["Web server", factOrEmpty(info.webserver)],
            ["HTTP server", factOrEmpty(info.http_server)],
            ["Concurrency", factOrEmpty(info.concurrency)],
            ["Database", factOrEmpty(info.database)],
            ["Database driver", factOrEmpty(info.database_driver)],
            ["ORM", factOrEmpty(info.orm)],
            ["JSON library", factOrEmpty(info.json_library)],
            ["Template engine", factOrEmpty(info.template_engine)],
            ["Classification", <bdi>{[info.classification, info.approach].filter(Boolean).join(", ")}</bdi>],
            ["Tags", info.tags.length ? <bdi>{info.tags.join(", ")}</bdi> : ""],
            ["Notes", info.notes ? <bdi>{info.notes}</bdi> : ""],
            ["Source", info.folder ? <SourceLink doc={doc} info={info} /> : ""],
          ]}
        />
      )}
      <Tabs
        label="Test types"
        panel="cell-panel"
        chosen={test}
        onChoose={(id) => go({ test: id, load: "", process: null })}
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
                · <strong>{micros(row.cpu_per_request.estimate.median)} µs</strong> CPU per request
                {isNumber(row.cpu_per_request.estimate.low) &&
                  ` [${micros(row.cpu_per_request.estimate.low)}, ${micros(row.cpu_per_request.estimate.high)}]`}
              </>
            )}
            {row.load && <> · at {loadName(row.load)}</>}
            {row.reason && (
              <span class="reason">
                {" "}
                · <bdi>{row.reason}</bdi>
              </span>
            )}
            {row.dropped > 0 && (
              <>
                {" "}
                · {row.dropped} of {row.trials} trials excluded by validity checks
              </>
            )}
          </p>
        )}
        {loaded.state === "ready" ? (
          <CellDetails cell={loaded.value} doc={doc} headline={row?.load ?? null} />
        ) : (
          <Waiting loaded={loaded} subject="the trials" />
        )}
      </div>
    </article>
  );
}

function CellDetails({ cell, doc, headline }: { cell: CellDocument; doc: RunDocument; headline: Load | null }) {
  const { route, go } = usePage();
  const loads = [...new Map(cell.trials.map((trial) => [label(trial.load), trial.load])).values()];
  const selected =
    loads.find((load) => label(load) === (route.load || (headline ? label(headline) : ""))) ?? loads.at(-1);
  const trials = cell.trials.filter((trial) => selected && label(trial.load) === label(selected));
  const info = doc.run.implementations.find((item) => item.name === cell.implementation);
  const shownProblems = new Set(doc.problems.map((problem) => problem.message));
  return (
    <>
      <Problems problems={cell.problems.filter((problem) => !shownProblems.has(problem.message))} />
      {cell.trials.length === 0 && (
        <p class="empty">
          There are no trials of this test type
          {doc.run.profile === "TechEmpower" ? " in a TechEmpower results file" : ""}.
        </p>
      )}
      {loads.length > 1 && selected && (
        <div class="toolbar">
          <label>
            <span>Load</span>
            <select value={label(selected)} onChange={(event) => go({ load: event.currentTarget.value })}>
              {loads.map((load) => (
                <option key={label(load)} value={label(load)}>
                  {loadName(load)}
                </option>
              ))}
            </select>
          </label>
        </div>
      )}
      {trials.length > 0 && <Trials trials={trials} />}
      {trials.length > 0 && <TimeSeries trials={trials} all={cell.trials} />}
      {trials.length > 0 && <ValidityChecks trials={trials} />}
      <Verification verdicts={cell.verdicts} trials={cell.trials} passedOmitted={doc.published !== ""} />
      <section aria-labelledby="starts">
        <h3 id="starts">Starts, build and logs</h3>
        {info?.build && (
          <Facts
            facts={[
              ["Build", `${info.build.status}${info.build.reason ? `: ${info.build.reason}` : ""}`],
              ["Duration", isNumber(info.build.duration) ? seconds(info.build.duration) : ""],
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
        {info?.build?.log && <LogView run={doc.run.run_id} path={info.build.log} label="Build log" />}
        {cell.processes.map((process) => (
          <div key={process.process} class="start">
            <p>
              Process {process.process + 1}: {process.status}
              {isNumber(process.startup_time) && `, startup time ${seconds(process.startup_time)}`}
              {process.reason && (
                <>
                  : <bdi>{process.reason}</bdi>
                </>
              )}
            </p>
            {process.log && (
              <LogView run={doc.run.run_id} path={process.log} label={`Log of process ${process.process + 1}`} />
            )}
          </div>
        ))}
      </section>
    </>
  );
}
