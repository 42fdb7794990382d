// The load curve: the selected metric over the number of connections or queries.
import type { RunDocument, TestDocument } from "../documents";
import { LineChart } from "../charts/lines";
import { needsLogScale } from "../charts/scales";
import { tick } from "../format";
import { usePage } from "../hooks";
import { axis, position, testName } from "../load";
import { SPECS } from "../metrics";
import type { RankedRow } from "../table";
import type { StyleFor } from "./series-styles";

interface Props {
  list: RankedRow[];
  styleFor: StyleFor;
  details: TestDocument | null;
  doc: RunDocument;
  test: string;
  omittedNote: string;
}

export function LoadCurve({ list, styleFor, details, doc, test, omittedNote }: Props) {
  const { route } = usePage();
  if (!details)
    return (
      <p class="waiting" role="status">
        Loading the results for each load …
      </p>
    );
  const loads = doc.run.loads[test] ?? [];
  const parameter = axis(loads);
  const spec = SPECS[route.metric];
  const tables = details.tables.flatMap((table) => (table.load ? [{ table, load: table.load }] : []));
  const rowsAt = tables.map(({ table }) => new Map(table.rows.map((row) => [row.implementation, row])));
  const series = list.map((entry) => ({
    name: entry.name,
    style: styleFor(entry.name),
    strong: route.pinned.includes(entry.name),
    points: tables.map(({ load }, index) => {
      const row = rowsAt[index]?.get(entry.name);
      const estimate = row ? spec.standing(row)?.estimate : undefined;
      return {
        x: position(load, parameter),
        y: row ? spec.value(row) : null,
        low: estimate?.low ?? null,
        high: estimate?.high ?? null,
      };
    }),
  }));
  const values = series.flatMap((item) => item.points.map((point) => point.y ?? 0));
  const log = needsLogScale(values, 40);
  const over = parameter === "queries" ? "queries per request" : "connections";
  return (
    <LineChart
      title={`${testName(test)}: ${spec.name} over ${over}`}
      note={`Medians of the processes with 95 % intervals.${spec.lowerIsBetter ? " Lower is better." : ""}${omittedNote}`}
      series={series}
      x={{
        label: parameter === "queries" ? over : `${over} (log scale)`,
        kind: parameter === "queries" ? "linear" : "log",
        format: (value) => `${value} ${over}`,
        tick: String,
        ticks: loads.map((load) => position(load, parameter)),
      }}
      y={{
        label: `${spec.column}${log ? " (log scale)" : ""}`,
        kind: log ? "log" : "linear",
        format: (value) => [spec.figure(value), spec.unit].filter(Boolean).join(" "),
        tick: route.metric === "throughput" ? tick : spec.figure,
      }}
      columns={["implementation", parameter, spec.id]}
    />
  );
}
