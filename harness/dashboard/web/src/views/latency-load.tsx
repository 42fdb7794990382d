// Latency at given rates: the ranking by the capacity at the goal, p99 over load, and the figures at every rate.
import type { GoalRow, LatencyTable, RatePoint } from "../documents";
import { IntervalChart } from "../charts/intervals";
import { LineChart } from "../charts/lines";
import { isNumber, ranks, seconds } from "../format";
import { number, PlainTable } from "../parts/plain-table";
import type { Line } from "../table";
import type { Looks } from "./looks";

interface Props {
  table: LatencyTable;
  few: Line[];
  list: Line[];
  looks: Looks;
  pinned: readonly string[];
  where: string; // name of the test type
}

const POINTS = ["50", "90", "99", "99.9"];

export function LatencyAtRates({ table, few, list, looks, pinned, where }: Props) {
  const drawn = few.flatMap((line) => rowOf(table, line));
  const goal = `p${table.goal.percentile} within ${seconds(table.goal.seconds)}`;
  return (
    <>
      <p class="quiet note">
        Kind of latency: <strong>open loop, from the intended send time</strong>. Poisson arrivals at each rate,
        whatever the server does; medians of the processes with 95 % intervals.
      </p>
      <IntervalChart
        title={`${where}: capacity with ${goal}`}
        note="The highest rate that met the goal. Bar: 95 % interval over processes. Higher is better."
        rows={drawn.flatMap((row) =>
          row.capacity && row.ranked
            ? [
                {
                  name: row.implementation,
                  value: row.capacity.estimate.median,
                  low: row.capacity.estimate.low,
                  high: row.capacity.estimate.high,
                  look: looks(row.implementation).class,
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
        note="Only loads whose validity checks passed: beyond the last point a rate was not achieved, or the generator was late."
        series={drawn.map((row) => ({
          name: row.implementation,
          look: looks(row.implementation),
          strong: pinned.includes(row.implementation),
          points: row.points.flatMap((point) => {
            const p99 = point.percentiles["99"];
            return p99 ? [{ x: point.rate, y: p99.median, low: p99.low, high: p99.high, note: asked(point) }] : [];
          }),
        }))}
        x={{ label: "requests/s (log scale)", kind: "log", format: rate }}
        y={{ label: "latency p99 (log scale)", kind: "log", format: seconds }}
        columns={["implementation", "requests_per_second", "latency_p99_seconds"]}
      />
      <GoalTable rows={list.flatMap((line) => rowOf(table, line))} goal={goal} where={where} />
      <PointTable rows={list.flatMap((line) => rowOf(table, line))} where={where} />
    </>
  );
}

function rowOf(table: LatencyTable, line: Line): GoalRow[] {
  const row = table.rows.find((one) => one.implementation === line.name);
  return row ? [row] : [];
}

function rate(value: number): string {
  return `${Math.round(value).toLocaleString("en")} req/s`;
}

function asked(point: RatePoint): string {
  const share = isNumber(point.share) ? `${Math.round(point.share * 100)} % of its own capacity` : "the same for all";
  return `${rate(point.rate)}, ${share}`;
}

function GoalTable({ rows, goal, where }: { rows: GoalRow[]; goal: string; where: string }) {
  const ordered = [...rows].sort((a, b) => (b.capacity?.estimate.median ?? 0) - (a.capacity?.estimate.median ?? 0));
  return (
    <PlainTable
      label={`${where}: capacity with ${goal}`}
      header={1}
      heads={["Rank", "Implementation", ...["Met", "Missed at", "Closed loop"].map(number), "Remarks"]}
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
      heads={["Implementation", "Load", ...[...POINTS.map((key) => `p${key}`), "Maximum seen"].map(number), "Remarks"]}
      rows={rows.flatMap((row) =>
        row.points.map((point) => ({
          key: `${row.implementation} ${point.purpose} ${point.share ?? point.rate}`,
          cells: [
            ...[row.implementation, asked(point)],
            ...[...POINTS.map((key) => point.percentiles[key]?.median), point.maximum].map((value) => seconds(value)),
            point.flags.join(", "),
          ],
        })),
      )}
    />
  );
}
