// Open-loop latency: a ranking by capacity at the latency goal, a chart of p99 over the rate, and values at each rate.
import type { GoalRow, LatencyTable, RatePoint } from "../documents";
import { IntervalChart } from "../charts/intervals";
import { LineChart } from "../charts/lines";
import { isNumber, ranks, seconds } from "../format";
import { number, PlainTable } from "../parts/plain-table";
import type { RankedRow } from "../table";
import type { StyleFor } from "./series-styles";

interface Props {
  table: LatencyTable;
  drawn: RankedRow[];
  list: RankedRow[];
  styleFor: StyleFor;
  pinned: readonly string[];
  where: string; // name of the test type
}

const POINTS = ["50", "90", "99", "99.9"];

export function LatencyAtRates({ table, drawn: drawnRows, list, styleFor, pinned, where }: Props) {
  const drawn = drawnRows.flatMap((entry) => goalRow(table, entry));
  const goal = `p${table.goal.percentile} within ${seconds(table.goal.seconds)}`;
  return (
    <>
      <p class="quiet note">
        Measured in an <strong>open loop, from the intended send time</strong>: at each rate, requests arrive in a
        Poisson process, independent of the server. Values are medians of the processes with 95 % intervals.
      </p>
      <IntervalChart
        title={`${where}: capacity with ${goal}`}
        note="Highest rate that met the goal. Bars are 95 % intervals over processes. Higher is better."
        rows={drawn.flatMap((row) =>
          row.capacity && row.ranked
            ? [
                {
                  name: row.implementation,
                  value: row.capacity.estimate.median,
                  low: row.capacity.estimate.low,
                  high: row.capacity.estimate.high,
                  colorClass: styleFor(row.implementation).class,
                },
              ]
            : [],
        )}
        label="requests/s"
        format={rate}
        column="requests_per_second"
      />
      <LineChart
        title={`${where}: 99th percentile over load`}
        note="Only rates that passed the validity checks are shown. A line ends where the server did not achieve the next rate or the load generator was late."
        series={drawn.map((row) => ({
          name: row.implementation,
          style: styleFor(row.implementation),
          strong: pinned.includes(row.implementation),
          points: row.points.flatMap((point) => {
            const p99 = point.percentiles["99"];
            return p99
              ? [{ x: point.rate, y: p99.median, low: p99.low, high: p99.high, note: describeRate(point) }]
              : [];
          }),
        }))}
        x={{ label: "requests/s (log scale)", kind: "log", format: rate }}
        y={{ label: "latency p99 (log scale)", kind: "log", format: seconds }}
        columns={["implementation", "requests_per_second", "latency_p99_seconds"]}
      />
      <GoalTable rows={list.flatMap((entry) => goalRow(table, entry))} goal={goal} where={where} />
      <PointTable rows={list.flatMap((entry) => goalRow(table, entry))} where={where} />
    </>
  );
}

function goalRow(table: LatencyTable, entry: RankedRow): GoalRow[] {
  const row = table.rows.find((candidate) => candidate.implementation === entry.name);
  return row ? [row] : [];
}

function rate(value: number): string {
  return `${Math.round(value).toLocaleString("en")} req/s`;
}

function describeRate(point: RatePoint): string {
  const share = isNumber(point.share) ? `${Math.round(point.share * 100)} % of its own capacity` : "same rate for all";
  return `${rate(point.rate)}, ${share}`;
}

function GoalTable({ rows, goal, where }: { rows: GoalRow[]; goal: string; where: string }) {
  const ordered = [...rows].sort((a, b) => (b.capacity?.estimate.median ?? 0) - (a.capacity?.estimate.median ?? 0));
  return (
    <PlainTable
      label={`${where}: capacity with ${goal}`}
      header={1}
      heads={["Rank", "Implementation", ...["Met", "Missed at", "Closed loop"].map(number), "Notes"]}
      rows={ordered.map((row) => ({
        key: row.implementation,
        cells: [
          row.capacity && row.ranked ? ranks(row.capacity.rank) : "–",
          row.implementation,
          ...[row.capacity?.estimate.median, row.above, row.closed_loop].map((value) =>
            isNumber(value) ? rate(value) : "–",
          ),
          [row.reason, ...row.flags].filter(Boolean).join(", "),
        ],
      }))}
    />
  );
}

function PointTable({ rows, where }: { rows: GoalRow[]; where: string }) {
  return (
    <PlainTable
      label={`${where}: latency at every rate`}
      heads={["Implementation", "Load", ...[...POINTS.map((key) => `p${key}`), "Maximum"].map(number), "Notes"]}
      rows={rows.flatMap((row) =>
        row.points.map((point) => ({
          key: `${row.implementation} ${point.purpose} ${point.share ?? point.rate}`,
          cells: [
            ...[row.implementation, describeRate(point)],
            ...[...POINTS.map((key) => point.percentiles[key]?.median), point.maximum].map((value) => seconds(value)),
            point.flags.join(", "),
          ],
        })),
      )}
    />
  );
}
