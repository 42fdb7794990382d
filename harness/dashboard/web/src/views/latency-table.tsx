// A table of all implementations' latencies. Columns without values are omitted.
import type { CellLatency } from "../documents";
import { isNumber, seconds } from "../format";
import { heat } from "../parts/heat";
import { number, PlainTable } from "../parts/plain-table";
import type { RankedRow } from "../table";

/** A row of the ranking with the latency at the row's load. */
export interface LatencyEntry {
  row: RankedRow;
  cell: CellLatency;
}

type ReadValue = (entry: LatencyEntry) => number | null | undefined;

const COLUMNS: [string, ReadValue][] = [
  ["Average", ({ cell }) => cell.mean],
  ["Deviation", ({ cell }) => cell.stdev],
  ...["50", "75", "90", "99", "99.9", "99.99"].map((key): [string, ReadValue] => [
    `p${key}`,
    ({ cell }) => cell.percentiles[key],
  ]),
  ["Maximum", ({ cell }) => cell.maximum],
];

export function LatencyTable({ entries, where }: { entries: LatencyEntry[]; where: string }) {
  const columns = COLUMNS.filter(([, read]) => entries.some((entry) => isNumber(read(entry))));
  const best = columns.map(([, read]) =>
    Math.min(
      ...entries
        .map(read)
        .filter(isNumber)
        .filter((value) => value > 0),
    ),
  );
  return (
    <PlainTable
      label={`${where}: latency`}
      heads={["Implementation", ...columns.map(([name]) => number(name))]}
      rows={entries.map((entry) => ({
        key: entry.row.name,
        cells: [
          entry.row.name,
          ...columns.map(([, read], index) => {
            const value = read(entry);
            const share = isNumber(value) && value > 0 ? (best[index] ?? value) / value : null;
            return { show: seconds(value), class: share === null ? "" : `heat heat-${heat(share)}` };
          }),
        ],
      }))}
    />
  );
}
