// Latency: the spectrum of percentiles where there is one, the 99th compared, and the figures of every implementation.
import type { CellLatency, RunDocument } from "../documents";
import { IntervalChart } from "../charts/intervals";
import { SpectrumChart } from "../charts/spectrum";
import { isNumber, seconds } from "../format";
import { useDocument, usePage } from "../hooks";
import { label, name as loadName, testName } from "../load";
import { Waiting } from "../parts/basics";
import type { Line } from "../table";
import { LatencyAtRates } from "./latency-load";
import { type LatencyEntry, LatencyTable } from "./latency-table";
import type { Looks } from "./looks";

interface Props {
  few: Line[];
  list: Line[];
  looks: Looks;
  doc: RunDocument;
  test: string;
  rest: string;
  version: number;
}

export function Latency({ few, list, looks, doc, test, rest, version }: Props) {
  const { source, route } = usePage();
  const loaded = useDocument(`latency ${route.run} ${test}#${version}`, () => source.latency(route.run, test));
  if (loaded.state !== "ready") return <Waiting loaded={loaded} what="the latencies" />;
  const loads = doc.run.loads[test] ?? [];
  const there = loads.filter((load) => loaded.value.cells.some((cell) => label(cell.load) === label(load)));
  const wanted = there.find((load) => label(load) === route.load) ?? there.at(-1);
  const at = new Map(
    loaded.value.cells
      .filter((cell) => wanted && label(cell.load) === label(wanted))
      .map((cell) => [cell.implementation, cell]),
  );
  if (!wanted || at.size === 0)
    return (
      <p class="empty">
        {loads.some((load) => load.depth > 1)
          ? "There is no latency of a pipelined test: the load generator's figures mean nothing there."
          : "This run has no latencies of this test type."}
      </p>
    );
  const drawn = few.flatMap((line) => cellOf(at, line));
  const atRates = doc.ranking.latency[test];
  const spectra = drawn.filter(({ cell }) => Object.keys(cell.percentiles).length > 0);
  const where = `${testName(test)} at ${loadName(wanted)}`;
  return (
    <>
      {atRates && (
        <LatencyAtRates
          table={atRates}
          few={few}
          list={list}
          looks={looks}
          pinned={route.pinned}
          where={testName(test)}
        />
      )}
      <Kind cells={[...at.values()]} rest={rest} />
      {spectra.length > 0 && (
        <SpectrumChart
          title={`${where}: latency by percentile`}
          note="Medians of the processes; the bars span the lowest and the highest process. Lower is better."
          spectra={spectra.map(({ line, cell }) => ({
            name: line.name,
            look: looks(line.name),
            strong: route.pinned.includes(line.name),
            percentiles: cell.percentiles,
            spread: cell.spread,
          }))}
        />
      )}
      <IntervalChart
        title={spectra.length > 0 ? `${where}: 99th percentile` : `${where}: average latency`}
        note={
          spectra.length > 0
            ? "Point: median of the processes. Bar: lowest and highest process."
            : "Averages hide the tail: see the maximum in the table."
        }
        rows={drawn.flatMap(({ line, cell }) => {
          const value = spectra.length > 0 ? cell.percentiles["99"] : cell.mean;
          const [low, high] = cell.spread["99"] ?? [];
          return isNumber(value)
            ? [
                {
                  name: line.name,
                  value,
                  low: isNumber(low) && low !== high ? low : null,
                  high: isNumber(high) && low !== high ? high : null,
                  look: looks(line.name).class,
                },
              ]
            : [];
        })}
        label="latency"
        format={seconds}
        column="latency_seconds"
      />
      <LatencyTable entries={list.flatMap((line) => cellOf(at, line))} where={where} />
    </>
  );
}

function cellOf(at: ReadonlyMap<string, CellLatency>, line: Line): LatencyEntry[] {
  const cell = at.get(line.name);
  return cell ? [{ line, cell }] : [];
}

/** What kind of latency it is: a closed loop's is no client's at a given rate. */
function Kind({ cells, rest }: { cells: CellLatency[]; rest: string }) {
  const bases = [...new Set(cells.map((cell) => cell.basis))];
  return (
    <p class="quiet note">
      Kind of latency: <strong>{bases.join("; ")}</strong>.{" "}
      {bases.some((basis) => basis.includes("closed")) &&
        "Measured at saturation by a closed loop: service time under full load, not what a client sees at a given rate."}
      {rest}
    </p>
  );
}
