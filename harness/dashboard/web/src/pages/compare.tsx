// Two runs side by side: each implementation's ratio between them, and what else differed.
import type { Ratio, Row, RunDocument, RunInfo } from "../documents";
import { ForestPlot } from "../charts/forest";
import { isNumber, micros, moment, rate, timesWithInterval } from "../format";
import { href, useDocument, usePage } from "../hooks";
import { label, testName } from "../level";
import { Problems, Tabs, Waiting } from "../parts/basics";
import { unpairedRatio } from "../ratio";

export function ComparePage() {
  const { source, route, go } = usePage();
  const listed = useDocument("runs", () => source.runs());
  const loaded = useDocument(`compare ${route.run} ${route.other}`, async () =>
    route.run && route.other ? Promise.all([source.run(route.run), source.run(route.other)]) : null,
  );
  if (listed.state !== "ready") return <Waiting loaded={listed} what="the list of runs" />;
  const runs = listed.value.runs;
  const choice = (name: string, value: string, change: (id: string) => void) => (
    <label>
      <span>{name}</span>
      <select value={value} onChange={(event) => change(event.currentTarget.value)}>
        <option value="">choose a run</option>
        {runs.map((run) => (
          <option key={run.run_id} value={run.run_id}>
            {moment(run.started_at)} {run.name}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <>
      <div class="heading">
        <h1>Compare two runs</h1>
      </div>
      <div class="toolbar" role="group" aria-label="Runs">
        {choice("Before", route.run, (run) => go({ run }))}
        {choice("After", route.other, (other) => go({ other }))}
        <button type="button" onClick={() => go({ run: route.other, other: route.run })}>
          Swap
        </button>
      </div>
      {!route.run || !route.other ? (
        <p class="empty">Choose two runs to see how each implementation changed.</p>
      ) : loaded.state !== "ready" ? (
        <Waiting loaded={loaded} what="the two runs" />
      ) : (
        loaded.value && <Comparison before={loaded.value[0]} after={loaded.value[1]} />
      )}
    </>
  );
}

function Comparison({ before, after }: { before: RunDocument; after: RunDocument }) {
  const { route, go } = usePage();
  const tests = Object.keys(before.ranking.test_types).filter((test) => Object.hasOwn(after.ranking.test_types, test));
  const test = tests.includes(route.test) ? route.test : (tests[0] ?? "");
  if (!test) return <p class="empty">These runs have no test type in common.</p>;
  const rowsBefore = before.ranking.test_types[test]?.headline.rows ?? [];
  const rowsAfter = after.ranking.test_types[test]?.headline.rows ?? [];
  const pairs = rowsBefore.flatMap((one) => {
    const two = rowsAfter.find((row) => row.implementation === one.implementation);
    return two
      ? [{ name: one.implementation, one, two, ratio: throughputRatio(one, two), cpu: cpuRatio(one, two) }]
      : [];
  });
  const only = (rows: Row[], others: Row[]): string[] =>
    rows.map((row) => row.implementation).filter((name) => !others.some((row) => row.implementation === name));
  const gone = only(rowsBefore, rowsAfter);
  const added = only(rowsAfter, rowsBefore);
  const floors = [before, after].map((document) => document.ranking.noise_floor?.throughput).filter(isNumber);
  const differences = differing(before.run, after.run);
  return (
    <>
      <Problems problems={[...before.problems, ...after.problems]} />
      {differences.length > 0 && (
        <details class="problem" open={differences.some((item) => item.weighs)}>
          <summary>
            {differences.some((item) => item.weighs)
              ? "These runs differ in more than the implementations"
              : "What else differs"}
          </summary>
          <table class="plain-table">
            <thead>
              <tr>
                <th scope="col">Fact</th>
                <th scope="col">Before</th>
                <th scope="col">After</th>
              </tr>
            </thead>
            <tbody>
              {differences.map((item) => (
                <tr key={item.name}>
                  <th scope="row">{item.name}</th>
                  <td>
                    <bdi>{item.before}</bdi>
                  </td>
                  <td>
                    <bdi>{item.after}</bdi>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </details>
      )}
      <Tabs
        label="Test types"
        panel="comparison"
        chosen={test}
        onChoose={(id) => go({ test: id })}
        tabs={tests.map((id) => ({ id, label: testName(id) }))}
      />
      <div id="comparison" role="tabpanel" aria-label={testName(test)}>
        <ForestPlot
          title={`${testName(test)}: throughput after ÷ before`}
          note={
            <>
              95 % intervals (Welch's t on logarithms: the runs share no blocks). A hollow square has 1 in its interval.
              {floors.length > 0 &&
                ` The shaded band is the machine's noise floor (±${(Math.max(...floors) * 100).toFixed(1)} %).`}
            </>
          }
          effects={pairs
            .slice(0, 80)
            .flatMap(({ name, ratio }) => (ratio ? [{ name, detail: testName(test), ratio }] : []))}
          left="slower after"
          right="faster after"
          floor={floors.length ? Math.max(...floors) : null}
        />
        <div class="table-frame" tabIndex={0} role="region" aria-label="Figures of both runs">
          <table class="plain-table">
            <thead>
              <tr>
                <th scope="col">Implementation</th>
                <th scope="col" class="number">
                  Requests/s before
                </th>
                <th scope="col" class="number">
                  after
                </th>
                <th scope="col" class="number">
                  Ratio
                </th>
                <th scope="col" class="number">
                  CPU µs before
                </th>
                <th scope="col" class="number">
                  after
                </th>
                <th scope="col" class="number">
                  Ratio
                </th>
              </tr>
            </thead>
            <tbody>
              {pairs.map(({ name, one, two, ratio, cpu }) => (
                <tr key={name}>
                  <th scope="row">
                    <a href={href({ page: "history", implementation: name, test })}>
                      <bdi>{name}</bdi>
                    </a>
                  </th>
                  <td class="number">
                    {rate(one.throughput?.estimate.median)}
                    {one.level && two.level && label(one.level) !== label(two.level) && (
                      <span class="quiet"> {label(one.level)}</span>
                    )}
                  </td>
                  <td class="number">
                    {rate(two.throughput?.estimate.median)}
                    {one.level && two.level && label(one.level) !== label(two.level) && (
                      <span class="quiet"> {label(two.level)}</span>
                    )}
                  </td>
                  <td class="number">{timesWithInterval(ratio)}</td>
                  <td class="number">{micros(one.cpu_per_request?.estimate.median)}</td>
                  <td class="number">{micros(two.cpu_per_request?.estimate.median)}</td>
                  <td class="number">{timesWithInterval(cpu)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        {gone.length > 0 && (
          <p>
            Only before: <bdi>{gone.join(", ")}</bdi>
          </p>
        )}
        {added.length > 0 && (
          <p>
            Only after: <bdi>{added.join(", ")}</bdi>
          </p>
        )}
      </div>
    </>
  );
}

function throughputRatio(one: Row, two: Row): Ratio | null {
  return one.throughput && two.throughput ? unpairedRatio(two.throughput.estimate, one.throughput.estimate) : null;
}

function cpuRatio(one: Row, two: Row): Ratio | null {
  return one.cpu_per_request && two.cpu_per_request
    ? unpairedRatio(two.cpu_per_request.estimate, one.cpu_per_request.estimate)
    : null;
}

interface Difference {
  name: string;
  before: string;
  after: string;
  weighs: boolean; // throughputs of the two runs cannot be compared without thinking of it
}

/** The facts of two runs that differ. */
export function differing(before: RunInfo, after: RunInfo): Difference[] {
  const facts: [string, (run: RunInfo) => string, boolean][] = [
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
      .map((tool): [string, (run: RunInfo) => string, boolean] => [tool, (run) => run.tools[tool] ?? "–", true]),
  ];
  return facts
    .map(([name, read, weighs]) => ({ name, before: read(before), after: read(after), weighs }))
    .filter((item) => item.before !== item.after);
}
