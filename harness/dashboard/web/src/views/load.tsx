// The load curve: the chosen metric over connections or queries.
import type { RunDocument, TestDocument } from "../documents";
import { LineChart } from "../charts/lines";
import { wantsLog } from "../charts/scales";
import { tick } from "../format";
import { usePage } from "../hooks";
import { axis, position, testName } from "../load";
import { SPECS } from "../metrics";
import type { Line } from "../table";
import type { Looks } from "./looks";

interface Props {
  list: Line[];
  looks: Looks;
  details: TestDocument | null;
  doc: RunDocument;
  test: string;
  rest: string;
}

export function LoadCurve({ list, looks, details, doc, test, rest }: Props) {
  const { route } = usePage();
  if (!details)
    return (
      <p class="waiting" role="status">
        Reading the loads …
      </p>
    );
  const loads = doc.run.loads[test] ?? [];
  const along = axis(loads);
  const spec = SPECS[route.metric];
  const tables = details.tables.flatMap((table) => (table.load ? [{ table, load: table.load }] : []));
  const rowsAt = tables.map(({ table }) => new Map(table.rows.map((row) => [row.implementation, row])));
  const series = list.map((line) => ({
    name: line.name,
    look: looks(line.name),
    strong: route.pinned.includes(line.name),
    points: tables.map(({ load }, index) => {
      const row = rowsAt[index]?.get(line.name);
      const estimate = row ? spec.standing(row)?.estimate : undefined;
      return {
        x: position(load, along),
        y: row ? spec.value(row) : null,
        low: estimate?.low ?? null,
        high: estimate?.high ?? null,
      };
    }),
  }));
  const values = series.flatMap((one) => one.points.map((point) => point.y ?? 0));
  const log = wantsLog(values, 40);
  const over = along === "queries" ? "queries a request" : "connections";
  return (
    <LineChart
      title={`${testName(test)}: ${spec.name} over ${over}`}
      note={`Medians of the processes with 95 % intervals.${spec.lowerIsBetter ? " Lower is better." : ""}${rest}`}
      series={series}
      x={{
        label: along === "queries" ? over : `${over} (log scale)`,
        kind: along === "queries" ? "linear" : "log",
        format: (value) => `${value} ${over}`,
        tick: String,
        ticks: loads.map((load) => position(load, along)),
      }}
      y={{
        label: `${spec.column}${log ? " (log scale)" : ""}`,
        kind: log ? "log" : "linear",
        format: (value) => [spec.figure(value), spec.unit].filter(Boolean).join(" "),
        tick: route.metric === "throughput" ? tick : spec.figure,
      }}
      columns={["implementation", along, spec.id]}
    />
  );
}
