// The drill-down of one implementation x test type: every sample, its gates and seconds, verification, build, logs.
import type { CellDocument, Level, RunDocument } from "../documents";
import { isNumber, micros, rate, seconds } from "../format";
import { href, useDocument, usePage } from "../hooks";
import { label, name as levelName, testName } from "../level";
import { Facts, Problems, Waiting } from "../parts/basics";
import { Gates, Verification } from "../parts/evidence";
import { LogView } from "../parts/log-view";
import { Samples } from "../parts/samples";
import { Seconds } from "../parts/seconds";
import { SourceLink } from "../parts/source-link";
import { Tabs } from "../parts/tabs";

export function CellPage({ doc }: { doc: RunDocument }) {
  const { source, route, go } = usePage();
  const { run, ranking } = doc;
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
            ["Lines", isNumber(info.lines) ? `${rate(info.lines)}, neither blank nor comment nor import` : ""],
            ["Tags", info.tags.length ? <bdi>{info.tags.join(", ")}</bdi> : ""],
            ["Notes", info.notes ? <bdi>{info.notes}</bdi> : ""],
            ["Source", info.folder ? <SourceLink doc={doc} info={info} /> : ""],
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
          <Evidence cell={loaded.value} doc={doc} headline={row?.level ?? null} />
        ) : (
          <Waiting loaded={loaded} what="the samples" />
        )}
      </div>
    </article>
  );
}

function Evidence({ cell, doc, headline }: { cell: CellDocument; doc: RunDocument; headline: Level | null }) {
  const { route, go } = usePage();
  const levels = [...new Map(cell.samples.map((sample) => [label(sample.level), sample.level])).values()];
  const chosen =
    levels.find((level) => label(level) === (route.level || (headline ? label(headline) : ""))) ?? levels.at(-1);
  const samples = cell.samples.filter((sample) => chosen && label(sample.level) === label(chosen));
  const info = doc.run.implementations.find((item) => item.name === cell.implementation);
  const extra = new Set(doc.problems.map((problem) => problem.message));
  return (
    <>
      <Problems problems={cell.problems.filter((problem) => !extra.has(problem.message))} />
      {cell.samples.length === 0 && (
        <p class="empty">
          There is no sample of this test type
          {doc.run.profile === "TechEmpower" ? " in a TechEmpower results file" : ""}.
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
        {info?.build?.log && <LogView run={doc.run.run_id} path={info.build.log} label="Build log" />}
        {cell.replicates.map((replicate) => (
          <div key={`${replicate.block} ${replicate.replicate}`} class="start">
            <p>
              Replicate {replicate.replicate + 1}: {replicate.status}
              {isNumber(replicate.first_answer) && `, started up in ${seconds(replicate.first_answer)}`}
              {replicate.reason && (
                <>
                  : <bdi>{replicate.reason}</bdi>
                </>
              )}
            </p>
            {replicate.log && (
              <LogView
                run={doc.run.run_id}
                path={replicate.log}
                label={`Log of replicate ${replicate.replicate + 1}`}
              />
            )}
          </div>
        ))}
      </section>
    </>
  );
}
