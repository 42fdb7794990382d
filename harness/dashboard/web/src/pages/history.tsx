// An implementation over runs: its throughput with intervals, and its ratio to the reference, which survives a new machine.
import { LineChart } from "../charts/lines";
import { look } from "../charts/palette";
import { micros, moment, rate, ranks, tick, timesWithInterval } from "../format";
import { href, useDocument, usePage } from "../hooks";
import { name as levelName, testName } from "../level";
import { Tabs, Waiting } from "../parts/basics";

export function HistoryPage() {
  const { source, route, go } = usePage();
  const listed = useDocument("runs", () => source.runs());
  const loaded = useDocument(`history ${route.implementation}`, async () =>
    route.implementation ? source.history(route.implementation) : null,
  );
  if (listed.state !== "ready") return <Waiting loaded={listed} what="the list of runs" />;
  const names = [...new Set(listed.value.runs.flatMap((run) => run.implementations))].sort();
  return (
    <>
      <div class="heading">
        <h1>History</h1>
      </div>
      <div class="toolbar">
        <label>
          <span>Implementation</span>
          <select value={route.implementation} onChange={(event) => go({ implementation: event.currentTarget.value })}>
            <option value="">choose one</option>
            {names.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
      </div>
      {!route.implementation ? (
        <p class="empty">Choose an implementation to see it over all runs.</p>
      ) : loaded.state !== "ready" ? (
        <Waiting loaded={loaded} what="its history" />
      ) : (
        loaded.value && <Points points={loaded.value.points} />
      )}
    </>
  );
}

function Points({ points }: { points: import("../documents").HistoryPoint[] }) {
  const { route, go } = usePage();
  const tests = [...new Set(points.map((point) => point.test_type))];
  const test = tests.includes(route.test) ? route.test : (tests[0] ?? "");
  if (!test) return <p class="empty">No run has measured it.</p>;
  const mine = points.filter((point) => point.test_type === test);
  const numbered = mine.map((point, index) => ({ point, index }));
  const cpu = route.metric === "cpu";
  return (
    <>
      <Tabs
        label="Test types"
        panel="history"
        chosen={test}
        onChoose={(id) => go({ test: id })}
        tabs={tests.map((id) => ({ id, label: testName(id) }))}
      />
      <div id="history" role="tabpanel" aria-label={testName(test)}>
        <div class="toolbar">
          <label>
            <span>Show</span>
            <select
              value={route.metric}
              onChange={(event) => go({ metric: event.currentTarget.value === "cpu" ? "cpu" : "throughput" })}
            >
              <option value="throughput">throughput</option>
              <option value="cpu">CPU per request</option>
            </select>
          </label>
        </div>
        <LineChart
          title={`${route.implementation}: ${testName(test)} over runs`}
          note="One point a run, in order of time, with its interval. Runs of different machines or profiles do not compare by absolute figures: the ratio to the reference in the table does better."
          series={[
            {
              name: route.implementation,
              look: look(0),
              points: numbered.map(({ point, index }) => {
                const estimate = cpu ? point.cpu_per_request : point.throughput;
                return {
                  x: index + 1,
                  y: estimate?.median ?? null,
                  low: estimate?.low ?? null,
                  high: estimate?.high ?? null,
                  note: `${moment(point.started_at)} ${point.name}`,
                };
              }),
            },
          ]}
          xLabel="run"
          yLabel={cpu ? "CPU µs/request" : "requests/s"}
          xScale="linear"
          yScale="linear"
          xTicks={numbered.map(({ index }) => index + 1)}
          formatX={(value) => moment(mine[Math.round(value) - 1]?.started_at).slice(0, 10)}
          formatY={cpu ? (value) => `${micros(value)} µs` : rate}
          formatTick={cpu ? micros : tick}
          height={300}
          columns={["implementation", "run", cpu ? "cpu_seconds_per_request" : "throughput"]}
        />
        <div class="table-frame" tabIndex={0} role="region" aria-label="History">
          <table class="plain-table">
            <thead>
              <tr>
                <th scope="col">Run</th>
                <th scope="col">Profile</th>
                <th scope="col">Level</th>
                <th scope="col" class="number">
                  Rank
                </th>
                <th scope="col" class="number">
                  Requests/s
                </th>
                <th scope="col" class="number">
                  CPU µs/req
                </th>
                <th scope="col" class="number">
                  × reference
                </th>
              </tr>
            </thead>
            <tbody>
              {[...mine].reverse().map((point) => (
                <tr key={point.run_id}>
                  <th scope="row">
                    <a href={href({ page: "run", run: point.run_id, test })}>
                      {moment(point.started_at)} <bdi>{point.name}</bdi>
                    </a>
                  </th>
                  <td>
                    <bdi>{point.profile}</bdi>
                  </td>
                  <td>{point.level ? levelName(point.level) : "–"}</td>
                  <td class="number">
                    {point.rank ? (
                      `${ranks(point.rank)} of ${point.of}`
                    ) : (
                      <span class="reason">{point.reason || "–"}</span>
                    )}
                  </td>
                  <td class="number">{rate(point.throughput?.median)}</td>
                  <td class="number">{micros(point.cpu_per_request?.median)}</td>
                  <td class="number">{timesWithInterval(point.to_reference)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </div>
    </>
  );
}
