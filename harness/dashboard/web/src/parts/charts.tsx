// The charts of a test type: over load, latency, efficiency, and A against B.
import type { ImplementationInfo, RunDocument, Table, TestDocument } from "../documents";
import { ForestPlot } from "../charts/forest";
import { LineChart } from "../charts/lines";
import { type Look, look } from "../charts/palette";
import { ScatterChart } from "../charts/scatter";
import { isNumber, micros, rate, seconds, significant, tick } from "../format";
import { useDocument, usePage } from "../hooks";
import { axis, label, position, testName } from "../level";
import type { View } from "../route";
import { type Line, lines, shown } from "../table";
import { Waiting } from "./basics";

const MOST_LINES = 8;

interface Props {
  view: View;
  table: Table;
  document: RunDocument;
  test: string;
  infos: Map<string, ImplementationInfo>;
  details: TestDocument | null;
  version: number;
}

export function Charts({ view, table, document, test, infos, details, version }: Props) {
  const { route } = usePage();
  const list = shown(lines(table, infos, route.metric, route.base, document.ranking.reference), route).filter(
    (line) => line.row.throughput,
  );
  const looks = looksOf(document, list);
  const few = list.filter((line, index) => index < MOST_LINES || route.marked.includes(line.name));
  const rest =
    few.length < list.length ? ` ${few.length} of ${list.length} are drawn: pin or filter to choose others.` : "";
  if (list.length === 0) return <p class="empty">Nothing that matches the filter has been measured.</p>;
  switch (view) {
    case "load":
      return <OverLoad list={few} looks={looks} details={details} document={document} test={test} rest={rest} />;
    case "latency":
      return <LatencyView list={few} looks={looks} document={document} test={test} rest={rest} version={version} />;
    case "efficiency":
      return <Efficiency list={list} looks={looks} test={test} />;
    default:
      return <Pairs list={list.slice(0, 60)} document={document} test={test} />;
  }
}

/** A look for each implementation: by its place in the run while there are few, so that it keeps it over all tabs. */
function looksOf(document: RunDocument, list: Line[]): Map<string, Look> {
  const all = document.run.implementations.map((info) => info.name);
  const names = all.length <= 16 ? all : list.map((line) => line.name);
  return new Map(names.map((name, index) => [name, look(index)]));
}

function lookOf(looks: Map<string, Look>, name: string): Look {
  return looks.get(name) ?? look(0);
}

function OverLoad({
  list,
  looks,
  details,
  document,
  test,
  rest,
}: {
  list: Line[];
  looks: Map<string, Look>;
  details: TestDocument | null;
  document: RunDocument;
  test: string;
  rest: string;
}) {
  const { route } = usePage();
  if (!details)
    return (
      <p class="waiting" role="status">
        Reading the levels …
      </p>
    );
  const levels = document.run.levels[test] ?? [];
  const along = axis(levels);
  const byLevel = details.levels.filter((table) => table.level);
  const cpu = route.metric === "cpu";
  const series = list.map((line) => ({
    name: line.name,
    look: lookOf(looks, line.name),
    strong: route.marked.includes(line.name),
    points: byLevel.map((table) => {
      const row = table.rows.find((item) => item.implementation === line.name);
      const estimate = (cpu ? row?.cpu_per_request : row?.throughput)?.estimate;
      return {
        x: position(table.level as NonNullable<Table["level"]>, along),
        y: estimate?.median ?? null,
        low: estimate?.low ?? null,
        high: estimate?.high ?? null,
      };
    }),
  }));
  return (
    <LineChart
      title={`${testName(test)}: ${cpu ? "CPU per request" : "throughput"} over ${along === "queries" ? "queries a request" : "connections"}`}
      note={`Medians of the replicates with their intervals.${rest}`}
      series={series}
      xLabel={along === "queries" ? "queries a request" : "connections (log scale)"}
      yLabel={cpu ? "CPU µs/request" : "requests/s"}
      xScale={along === "queries" ? "linear" : "log"}
      yScale="linear"
      xTicks={levels.map((level) => position(level, along))}
      formatX={(value) => String(value)}
      formatY={cpu ? (value) => `${micros(value)} µs` : rate}
      formatTick={cpu ? micros : tick}
      columns={["implementation", along, cpu ? "cpu_seconds_per_request" : "throughput"]}
    />
  );
}

function LatencyView({
  list,
  looks,
  document,
  test,
  rest,
  version,
}: {
  list: Line[];
  looks: Map<string, Look>;
  document: RunDocument;
  test: string;
  rest: string;
  version: number;
}) {
  const { source, route } = usePage();
  const loaded = useDocument(`latency ${route.run} ${test}#${version}`, () => source.latency(route.run, test));
  if (loaded.state !== "ready") return <Waiting loaded={loaded} what="the latencies" />;
  const cells = loaded.value.cells;
  const levels = document.run.levels[test] ?? [];
  const wanted = levels.find((level) => label(level) === route.level) ?? levels.at(-1);
  const at = cells.filter((cell) => wanted && label(cell.level) === label(wanted));
  if (at.length === 0)
    return (
      <p class="empty">
        {levels.some((level) => level.pipeline > 1)
          ? "There is no latency of a pipelined test: the load generator's figures mean nothing there."
          : "This run has no latencies of this test type."}
      </p>
    );
  const series = list.map((line) => {
    const cell = at.find((item) => item.implementation === line.name);
    const points = Object.entries(cell?.percentiles ?? {})
      .map(([key, value]) => ({ x: 100 / (100 - Number(key)), y: value, note: `p${key}` }))
      .filter((point) => Number.isFinite(point.x))
      .sort((a, b) => a.x - b.x);
    return { name: line.name, look: lookOf(looks, line.name), strong: route.marked.includes(line.name), points };
  });
  const bases = [...new Set(at.map((cell) => cell.basis))];
  const closed = bases.some((basis) => basis.startsWith("closed"));
  return (
    <LineChart
      title={`${testName(test)}: latency by percentile at ${wanted ? label(wanted) : ""}`}
      note={
        <>
          Kind of latency: <strong>{bases.join("; ")}</strong>.{" "}
          {closed &&
            "Measured at saturation by a closed loop: service time under full load, not what a client sees at a given rate."}
          {rest}
        </>
      }
      series={series}
      xLabel="percentile (log scale of the tail)"
      yLabel="latency (log scale)"
      xScale="log"
      yScale="log"
      xTicks={[2, 4, 10, 100, 1000, 10_000]}
      formatX={(value) => `p${Number((100 - 100 / value).toFixed(2))}`}
      formatY={seconds}
      columns={["implementation", "percentile", "latency_seconds"]}
    />
  );
}

function Efficiency({ list, looks, test }: { list: Line[]; looks: Map<string, Look>; test: string }) {
  const { route } = usePage();
  const dots = (x: (line: Line) => number | null | undefined, unit: number) =>
    list.flatMap((line) => {
      const cost = x(line);
      const y = line.row.throughput?.estimate.median;
      return isNumber(cost) && isNumber(y)
        ? [
            {
              name: line.name,
              x: cost / unit,
              y,
              look: lookOf(looks, line.name),
              marked: route.marked.includes(line.name),
            },
          ]
        : [];
    });
  return (
    <div class="two">
      <ScatterChart
        title={`${testName(test)}: throughput against CPU per request`}
        note="Up and to the left is better: more answers, each for less CPU time."
        dots={dots((line) => line.row.cpu_per_request?.estimate.median, 1e-6)}
        xLabel="CPU µs per request"
        formatX={(value) => `${significant(value)} µs`}
        columns={["implementation", "cpu_microseconds_per_request", "throughput"]}
      />
      <ScatterChart
        title={`${testName(test)}: throughput against peak memory`}
        note="Peak resident memory of the server's processes, the database left out."
        dots={dots((line) => line.row.rss_peak, 2 ** 20)}
        xLabel="peak memory in MiB"
        formatX={(value) => `${significant(value)} MiB`}
        columns={["implementation", "rss_peak_mebibytes", "throughput"]}
      />
    </div>
  );
}

function Pairs({ list, document, test }: { list: Line[]; document: RunDocument; test: string }) {
  const { route } = usePage();
  const baseline = route.base || document.ranking.reference || "";
  const floor = document.ranking.noise_floor?.throughput ?? null;
  if (!baseline) return <p class="empty">Choose a baseline above to compare the others with it.</p>;
  const effects = list.flatMap((line) =>
    line.name !== baseline && line.ratio ? [{ name: line.name, detail: testName(test), ratio: line.ratio }] : [],
  );
  return (
    <ForestPlot
      title={`${testName(test)}: throughput as a multiple of ${baseline}`}
      note={
        <>
          Ratios with their {Math.round(document.ranking.confidence * 100)} % intervals, each pair by itself. A hollow
          square has 1 in its interval: the difference may be chance.
          {isNumber(floor) &&
            ` The shaded band is this machine's noise floor (±${(floor * 100).toFixed(1)} %): a smaller difference is none.`}
        </>
      }
      effects={effects}
      left={`slower than ${baseline}`}
      right={`faster than ${baseline}`}
      floor={floor}
    />
  );
}
