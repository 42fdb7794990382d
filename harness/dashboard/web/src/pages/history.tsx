// An implementation over runs: on a time scale, one line a machine, with its ratio to the reference, which survives a new one.
import type { Estimate, HistoryPoint } from "../documents";
import { type Axis, LineChart, type Series } from "../charts/lines";
import { look } from "../charts/palette";
import { micros, moment, ranks, rate, tick, timesWithInterval } from "../format";
import { href, useDocument, usePage } from "../hooks";
import { name as loadName, testName } from "../load";
import { Waiting } from "../parts/basics";
import { number, PlainTable } from "../parts/plain-table";
import { SmallPrint } from "../parts/small";
import { Tabs } from "../parts/tabs";

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

const TIME: Axis = {
  label: "date of the run",
  kind: "time",
  format: moment,
  tick: (value) => moment(value).slice(0, 10),
};
const RATES: Axis = { label: "requests/s", kind: "linear", format: rate, tick };
const COSTS: Axis = {
  label: "CPU µs/request, lower is better",
  kind: "linear",
  format: (value) => `${micros(value)} µs`,
  tick: micros,
};
const RATIOS: Axis = {
  label: "× reference (log scale)",
  kind: "log",
  format: (value) => timesWithInterval({ value, low: null, high: null }),
};

function Points({ points }: { points: HistoryPoint[] }) {
  const { route, go } = usePage();
  const tests = [...new Set(points.map((point) => point.test_type))];
  const test = tests.includes(route.test) ? route.test : (tests[0] ?? "");
  if (!test) return <p class="empty">No run has measured it.</p>;
  const mine = points.filter((point) => point.test_type === test);
  const cpu = route.metric === "cpu";
  const machines = new Set(mine.map((point) => point.machine)).size;
  const ratios = machineSeries(mine, (point) => ({
    y: point.to_reference?.value ?? null,
    low: point.to_reference?.low ?? null,
    high: point.to_reference?.high ?? null,
  }));
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
        <LineChart
          title={`${route.implementation}: ${testName(test)} over runs`}
          note={`One point a run, with its interval${machines > 1 ? "; one line a machine: figures of different machines do not compare" : ""}.`}
          series={machineSeries(mine, (point) => {
            const estimate = cpu ? point.cpu_per_request : point.throughput;
            return { y: estimate?.median ?? null, low: estimate?.low ?? null, high: estimate?.high ?? null };
          })}
          x={TIME}
          y={cpu ? COSTS : RATES}
          height={320}
          columns={["machine", "run", cpu ? "cpu_seconds_per_request" : "throughput"]}
        />
        {!cpu && machines > 1 && ratios.some((one) => one.points.some((point) => point.y !== null)) && (
          <LineChart
            title={`${route.implementation}: ${testName(test)} relative to each run's reference`}
            note="The ratio survives a new machine better than the figure does."
            series={ratios}
            x={TIME}
            y={RATIOS}
            height={260}
            columns={["machine", "run", "ratio"]}
          />
        )}
        <PointsTable points={mine} test={test} />
      </div>
    </>
  );
}

type Value = { y: number | null; low: number | null; high: number | null };

/** One series a machine, in order of their first runs. */
export function machineSeries(points: readonly HistoryPoint[], read: (point: HistoryPoint) => Value): Series[] {
  const machines = [...new Set(points.map((point) => point.machine))];
  return machines.map((machine, index) => ({
    name: machine,
    look: look(index),
    points: points
      .filter((point) => point.machine === machine)
      .map((point) => ({ x: point.started_at, ...read(point), note: `${moment(point.started_at)} ${point.title}` })),
  }));
}

function small(found: Estimate | null, show: (value: number | null | undefined) => string) {
  return <SmallPrint value={found?.median} low={found?.low} high={found?.high} show={show} />;
}

function PointsTable({ points, test }: { points: HistoryPoint[]; test: string }) {
  return (
    <PlainTable
      label="History"
      heads={[
        ...["Run", "Machine", "Profile", "Load"],
        ...["Possible ranks", "Requests/s", "CPU µs/req", "× reference"].map(number),
      ]}
      rows={[...points].reverse().map((point) => ({
        key: point.run_id,
        cells: [
          <a href={href({ page: "run", run: point.run_id, test })}>
            {moment(point.started_at)} <bdi>{point.title}</bdi>
          </a>,
          ...[point.machine, point.profile, point.load ? loadName(point.load) : "–"],
          point.rank ? `${ranks(point.rank)} of ${point.of}` : <span class="reason">{point.reason || "–"}</span>,
          small(point.throughput, rate),
          small(point.cpu_per_request, micros),
          timesWithInterval(point.to_reference),
        ],
      }))}
    />
  );
}
