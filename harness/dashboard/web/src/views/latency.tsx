// The latency view: percentile spectra and 99th percentiles, or averages if the run has no percentiles, and a table.
import type { CellLatency, RunDocument } from "../documents";
import { IntervalChart } from "../charts/intervals";
import { SpectrumChart } from "../charts/spectrum";
import { isNumber, seconds } from "../format";
import { useDocument, usePage } from "../hooks";
import { label, type Load, name as loadName, testName } from "../load";
import { Waiting } from "../parts/basics";
import type { RankedRow } from "../table";
import { LatencyAtRates } from "./latency-load";
import { type LatencyEntry, LatencyTable } from "./latency-table";
import type { StyleFor } from "./series-styles";

interface Props {
  drawn: RankedRow[];
  list: RankedRow[];
  styleFor: StyleFor;
  doc: RunDocument;
  test: string;
  omittedNote: string;
  version: number;
}

export function Latency({ drawn: drawnRows, list, styleFor, doc, test, omittedNote, version }: Props) {
  const { source, route } = usePage();
  const loaded = useDocument(`latency ${route.run} ${test}#${version}`, () => source.latency(route.run, test));
  if (loaded.state !== "ready") return <Waiting loaded={loaded} subject="the latencies" />;
  const cellByKey = new Map(loaded.value.cells.map((cell) => [cellKey(cell.implementation, cell.load), cell]));
  const drawn = drawnRows.flatMap((row) => latencyEntry(cellByKey, row));
  const entries = list.flatMap((row) => latencyEntry(cellByKey, row));
  const [first] = entries;
  if (!first)
    return (
      <p class="empty">
        {list.some(({ row }) => row.load && row.load.depth > 1)
          ? "Pipelined tests have no meaningful latency."
          : `This run has no latencies for this test type${route.load ? ` at ${route.load}` : ""}.`}
      </p>
    );
  const atRates = doc.ranking.latency[test];
  const spectra = drawn.filter(({ cell }) => Object.keys(cell.percentiles).length > 0);
  const sameLoad = entries.every(({ cell }) => label(cell.load) === label(first.cell.load));
  const where = `${testName(test)} at ${sameLoad ? loadName(first.cell.load) : "each implementation's best load"}`;
  return (
    <>
      {atRates && (
        <LatencyAtRates
          table={atRates}
          drawn={drawnRows}
          list={list}
          styleFor={styleFor}
          pinned={route.pinned}
          where={testName(test)}
        />
      )}
      <LatencyKind cells={entries.map(({ cell }) => cell)} omittedNote={omittedNote} />
      {spectra.length > 0 && (
        <SpectrumChart
          title={`${where}: latency by percentile`}
          note="Medians of the processes; bars range from the lowest to the highest process. Lower is better."
          spectra={spectra.map(({ row, cell }) => ({
            name: row.name,
            style: styleFor(row.name),
            strong: route.pinned.includes(row.name),
            percentiles: cell.percentiles,
            spread: cell.spread,
          }))}
        />
      )}
      <IntervalChart
        title={spectra.length > 0 ? `${where}: 99th percentile` : `${where}: average latency`}
        note={
          spectra.length > 0
            ? "Points are medians of the processes; bars range from the lowest to the highest process."
            : "Averages hide the tail; see the maximum in the table."
        }
        rows={drawn.flatMap(({ row, cell }) => {
          const value = spectra.length > 0 ? cell.percentiles["99"] : cell.mean;
          const [low, high] = cell.spread["99"] ?? [];
          return isNumber(value)
            ? [
                {
                  name: row.name,
                  value,
                  low: isNumber(low) && low !== high ? low : null,
                  high: isNumber(high) && low !== high ? high : null,
                  colorClass: styleFor(row.name).class,
                },
              ]
            : [];
        })}
        label="latency"
        format={seconds}
        column="latency_seconds"
      />
      <LatencyTable entries={entries} where={where} />
    </>
  );
}

function cellKey(implementation: string, load: Load): string {
  return `${implementation}\n${label(load)}`;
}

/** Return a row with its latency, or an empty list if the latency at the row's load is unknown. */
function latencyEntry(cells: ReadonlyMap<string, CellLatency>, row: RankedRow): LatencyEntry[] {
  const cell = row.row.load ? cells.get(cellKey(row.name, row.row.load)) : undefined;
  return cell ? [{ row, cell }] : [];
}

/** A note about how latency was measured, with a warning about closed loops. */
function LatencyKind({ cells, omittedNote }: { cells: CellLatency[]; omittedNote: string }) {
  const bases = [...new Set(cells.map((cell) => cell.basis))];
  return (
    <p class="quiet note">
      How latency was measured: <strong>{bases.join("; ")}</strong>.{" "}
      {bases.some((basis) => basis.includes("closed")) &&
        "A closed loop at saturation measures the service time under full load, not the latency that a client sees at a given rate."}
      {omittedNote}
    </p>
  );
}
