// The selected implementations side by side: all metrics of a test type, or a single metric for all test types.
import { type Effect, ForestPlot } from "../charts/forest";
import type { ImplementationInfo, RunDocument, Table } from "../documents";
import { usePage } from "../hooks";
import { testName } from "../load";
import { availableMetrics, type MetricSpec, SPECS } from "../metrics";
import { BaselineSelect } from "../parts/baseline";
import { FigureWithInterval, RatioFigure } from "../parts/figure";
import { number, PlainTable } from "../parts/plain-table";
import { scorable } from "../scores";
import { type RankedRow, rankRows } from "../table";

interface Line {
  label: string;
  spec: MetricSpec;
  entries: Map<string, RankedRow>; // implementation -> row
}

interface Props {
  doc: RunDocument;
  infos: ReadonlyMap<string, ImplementationInfo>;
  test: string; // test type; ignored without a table
  group: string | null; // group of test types in the overall view; null for the test types without a group
  table: Table | null; // null in the overall view, which shows a single metric for all test types
}

export function SelectedRows({ doc, infos, test, group, table }: Props) {
  const { route } = usePage();
  const { reference, test_types } = doc.ranking;
  const shown = scorable(doc.ranking, group);
  const names = route.selected.filter((name) => infos.has(name));
  const line = (label: string, of: Table, spec: MetricSpec): Line => ({
    label,
    spec,
    entries: new Map(rankRows(of, infos, spec.id, reference).map((entry) => [entry.name, entry])),
  });
  const lines = table
    ? availableMetrics(table.rows).map((spec) => line(spec.name, table, spec))
    : Object.entries(test_types)
        .filter(([id]) => shown.includes(id))
        .map(([id, { headline }]) => line(testName(id), headline, SPECS[route.metric]));
  const subject = table ? testName(test) : SPECS[route.metric].name;
  return (
    <>
      <div class="toolbar">
        <BaselineSelect infos={doc.run.implementations} usual={doc.run.reference} />
      </div>
      <PlainTable
        label={`${subject}: selected rows`}
        heads={[table ? "Metric" : "Test", ...names.map(number)]}
        rows={lines.map(({ label, spec, entries }) => ({
          key: label,
          cells: [
            `${label}${table && spec.id === "cpu" ? " (µs)" : ""}`,
            ...names.map((name) => (
              <Value key={name} entry={entries.get(name)} spec={spec} isBaseline={name === reference} />
            )),
          ],
        }))}
      />
      <ForestPlot
        title={`${subject}: selected rows as a multiple of ${reference ?? "the best"}`}
        note={`Ratios with ${Math.round(doc.ranking.confidence * 100)} % intervals. The interval of a hollow square contains 1, so the difference may be due to chance.`}
        effects={lines.flatMap((item) => effects(item, names, reference))}
        left="less"
        right="more"
        floor={null}
      />
    </>
  );
}

function Value({ entry, spec, isBaseline }: { entry: RankedRow | undefined; spec: MetricSpec; isBaseline: boolean }) {
  if (!entry?.figure) return <>–</>;
  const { median, low, high } = entry.figure;
  return (
    <>
      <FigureWithInterval value={median} low={low} high={high} show={spec.figure} strong />
      <br />
      {isBaseline ? <span class="quiet">baseline</span> : entry.ratio && <RatioFigure ratio={entry.ratio} />}
    </>
  );
}

/** Return the ratios for the forest plot, which shows only metrics with intervals. */
function effects({ label, spec, entries }: Line, names: readonly string[], reference: string | null): Effect[] {
  return names.flatMap((name) => {
    const ratio = entries.get(name)?.ratio;
    return spec.processes && ratio && name !== reference ? [{ name: `${name}, ${label}`, detail: label, ratio }] : [];
  });
}
