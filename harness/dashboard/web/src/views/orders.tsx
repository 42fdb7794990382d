// The order service: who answers "create order" soonest at each factor of the arrivals, at what cost, and up to where.
import { IntervalChart, type IntervalRow } from "../charts/intervals";
import type { ImplementationInfo, OrderRow, OrderResults, OrderTable, RunDocument, Standing } from "../documents";
import { bytes, isNumber, micros, ranks, seconds, span } from "../format";
import { href, usePage } from "../hooks";
import { number, PlainTable } from "../parts/plain-table";
import { looksOf, type Looks } from "./looks";

interface Props {
  doc: RunDocument;
  orders: OrderResults;
  infos: ReadonlyMap<string, ImplementationInfo>;
}

export function OrderRanking({ doc, orders, infos }: Props) {
  const looks = looksOf(doc, []);
  const hardest = [...orders.tables].reverse();
  return (
    <>
      <p class="quiet note">
        Arrivals of five use cases at given rates (open loop, Poisson), whatever the server does: ×1 is 445 arrivals and
        1,000 requests a minute. Response times count <strong>from the due time</strong>: an arrival's first request
        from its drawn moment, a later one from the answer before it. Medians of the processes with 95 % intervals.
      </p>
      {hardest.map((table) => (
        <AtFactor key={table.factor} table={table} infos={infos} looks={looks} />
      ))}
      <Capacity orders={orders} looks={looks} />
    </>
  );
}

function AtFactor({ table, infos, looks }: { table: OrderTable; infos: Props["infos"]; looks: Looks }) {
  const { route } = usePage();
  const title = `×${table.factor}: response time of "create order"`;
  return (
    <section aria-label={title}>
      <IntervalChart
        title={title}
        note="The median of each process, from the due time. Bar: 95 % interval over processes. Lower is better."
        rows={table.rows.flatMap((row) => bar(row.implementation, row.response, looks))}
        label="response time"
        format={seconds}
        column="response_time_p50_seconds"
      />
      <PlainTable
        label={`${title}, all figures`}
        header={1}
        heads={[
          ...["Rank", "Implementation"],
          ...["p50", "p90", "p99", "CPU per arrival", "of the database", "Memory"].map(number),
          "Remarks",
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
            ...figures(row),
            [row.ranked ? "" : row.reason, ...row.flags].filter(Boolean).join(", "),
          ],
        }))}
      />
    </section>
  );
}

function figures(row: OrderRow): string[] {
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

/** ``1.2 ms [1.1–1.4 ms]``, or the median alone with one process. */
function withSpan(
  estimate: { median: number; low: number | null; high: number | null },
  format: (value: number) => string,
): string {
  const ends = span(estimate.low, estimate.high, format);
  return ends ? `${format(estimate.median)} ${ends}` : format(estimate.median);
}

function bar(name: string, standing: Standing | null, looks: Looks): IntervalRow[] {
  if (!standing) return [];
  const { median, low, high } = standing.estimate;
  return [{ name, value: median, low, high, look: looks(name).class }];
}

function Capacity({ orders, looks }: { orders: OrderResults; looks: Looks }) {
  const rows = orders.capacities ?? [];
  if (!orders.goal || rows.length === 0) return null;
  const goal = `p${orders.goal.percentile} of "create order" within ${seconds(orders.goal.seconds)}`;
  return (
    <section aria-label="Capacity">
      <IntervalChart
        title={`Highest factor with ${goal}`}
        note="The highest factor that was tried and met the goal. Bar: 95 % interval over processes. Higher is better."
        rows={rows.flatMap((row) => (row.ranked ? bar(row.implementation, row.capacity, looks) : []))}
        label="factor of the arrivals"
        format={(value) => `×${Number(value.toPrecision(3))}`}
        column="factor"
      />
      {rows.some((row) => row.reason || row.flags.length > 0) && (
        <ul class="quiet">
          {rows.map((row) => {
            const said = [row.reason, ...row.flags].filter(Boolean).join(", ");
            return (
              said && (
                <li key={row.implementation}>
                  <bdi>{row.implementation}</bdi>: {said}
                </li>
              )
            );
          })}
        </ul>
      )}
    </section>
  );
}
