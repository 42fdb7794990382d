// The order service: response times of "create order" at each load factor, costs, and capacity.
import { IntervalChart, type IntervalRow } from "../charts/intervals";
import type {
  ImplementationInfo,
  ScenarioRow,
  ScenarioResults,
  ScenarioTable,
  RunDocument,
  Standing,
} from "../documents";
import { bytes, isNumber, micros, ranks, seconds, span } from "../format";
import { href, usePage } from "../hooks";
import { number, PlainTable } from "../parts/plain-table";
import { assignStyles, type StyleFor } from "./series-styles";

interface Props {
  doc: RunDocument;
  orders: ScenarioResults;
  infos: ReadonlyMap<string, ImplementationInfo>;
}

export function OrderRanking({ doc, orders, infos }: Props) {
  const styleFor = assignStyles(doc, []);
  const tables = [...orders.tables].reverse();
  return (
    <>
      <p class="quiet note">
        Arrivals of five use cases at given rates (open loop, Poisson), independent of the server: ×1 is 445 arrivals
        and 1,000 requests per minute. Response times are measured <strong>from the due time</strong>: the scheduled
        arrival for the first request, and the previous response for later requests. Values are medians of the processes
        with 95 % intervals.
      </p>
      {tables.map((table) => (
        <AtFactor key={table.factor} table={table} infos={infos} styleFor={styleFor} />
      ))}
      <Capacity orders={orders} styleFor={styleFor} />
    </>
  );
}

function AtFactor({ table, infos, styleFor }: { table: ScenarioTable; infos: Props["infos"]; styleFor: StyleFor }) {
  const { route } = usePage();
  const title = `×${table.factor}: response time of "create order"`;
  return (
    <section aria-label={title}>
      <IntervalChart
        title={title}
        note="Median response time from the due time. Bars are 95 % intervals over processes. Lower is better."
        rows={table.rows.flatMap((row) => intervalRow(row.implementation, row.response, styleFor))}
        label="response time"
        format={seconds}
        column="response_time_p50_seconds"
      />
      <PlainTable
        label={`${title}, all values`}
        header={1}
        heads={[
          ...["Rank", "Implementation"],
          ...["p50", "p90", "p99", "CPU per arrival", "Database CPU", "Memory"].map(number),
          "Notes",
        ]}
        rows={table.rows.map((row) => ({
          key: row.implementation,
          class: row.ranked ? "" : "unranked",
          cells: [
            row.ranked && row.response ? ranks(row.response.rank) : "–",
            <a
              href={href({ ...route, view: "cell", test: "order", implementation: row.implementation })}
              title={infos.get(row.implementation)?.display_name}
            >
              <bdi>{row.implementation}</bdi>
            </a>,
            ...formatCosts(row),
            [row.ranked ? "" : row.reason, ...row.flags].filter(Boolean).join(", "),
          ],
        }))}
      />
    </section>
  );
}

function formatCosts(row: ScenarioRow): string[] {
  const cpu = row.cpu_per_request?.estimate;
  return [
    ...["50", "90", "99"].map((key) => {
      const estimate = row.percentiles[key];
      return estimate ? withSpan(estimate, seconds) : "–";
    }),
    cpu ? `${withSpan(cpu, micros)} µs` : "–",
    row.database_cpu_per_arrival ? `${micros(row.database_cpu_per_arrival.median)} µs` : "–",
    isNumber(row.rss_peak) ? bytes(row.rss_peak) : "–",
  ];
}

/** Format an estimate as ``1.2 ms [1.1, 1.4]``, without the interval if there is none. */
function withSpan(
  estimate: { median: number; low: number | null; high: number | null },
  format: (value: number) => string,
): string {
  const ends = span(estimate.low, estimate.high, format);
  return ends ? `${format(estimate.median)} ${ends}` : format(estimate.median);
}

function intervalRow(name: string, standing: Standing | null, styleFor: StyleFor): IntervalRow[] {
  if (!standing) return [];
  const { median, low, high } = standing.estimate;
  return [{ name, value: median, low, high, colorClass: styleFor(name).class }];
}

function Capacity({ orders, styleFor }: { orders: ScenarioResults; styleFor: StyleFor }) {
  const rows = orders.capacities ?? [];
  if (!orders.goal || rows.length === 0) return null;
  const goal = `p${orders.goal.percentile} of "create order" within ${seconds(orders.goal.seconds)}`;
  return (
    <section aria-label="Capacity">
      <IntervalChart
        title={`Highest factor with ${goal}`}
        note="Highest tested factor that met the goal. Bars are 95 % intervals over processes. Higher is better."
        rows={rows.flatMap((row) => (row.ranked ? intervalRow(row.implementation, row.capacity, styleFor) : []))}
        label="load factor"
        format={(value) => `×${Number(value.toPrecision(3))}`}
        column="factor"
      />
      {rows.some((row) => row.reason || row.flags.length > 0) && (
        <ul class="quiet">
          {rows.map((row) => {
            const notes = [row.reason, ...row.flags].filter(Boolean).join(", ");
            return (
              notes && (
                <li key={row.implementation}>
                  <bdi>{row.implementation}</bdi>: {notes}
                </li>
              )
            );
          })}
        </ul>
      )}
    </section>
  );
}
