// The order service's use cases, operation by operation: what each customer waited for, at one factor of the arrivals.
import type { OrderPoint, OrderResults } from "../documents";
import { seconds, span } from "../format";
import { usePage } from "../hooks";
import { number, PlainTable } from "../parts/plain-table";

interface Props {
  orders: OrderResults;
}

export function OrderOperations({ orders }: Props) {
  const factors = orders.tables.map((table) => table.factor);
  const { route, go } = usePage();
  const chosen = factors.find((factor) => `x${factor}` === route.load) ?? factors.at(-1) ?? 1;
  const cases = useCases(orders, chosen);
  return (
    <>
      <p>
        <label>
          Factor of the arrivals{" "}
          <select value={`x${chosen}`} onChange={(event) => go({ load: event.currentTarget.value })}>
            {factors.map((value) => (
              <option key={value} value={`x${value}`}>
                ×{value}
              </option>
            ))}
          </select>
        </label>
      </p>
      {cases.map(([name, operations]) => (
        <section key={name} aria-label={name}>
          <h2>{name}</h2>
          <OperationTable name={name} operations={operations} orders={orders} factor={chosen} />
        </section>
      ))}
    </>
  );
}

/** Each use case with its operations, in the order in which they were recorded; "" is the whole arrival. */
function useCases(orders: OrderResults, factor: number): [string, string[]][] {
  const found = new Map<string, string[]>();
  for (const points of Object.values(orders.points))
    for (const point of points) {
      if (point.factor !== factor) continue;
      const operations = found.get(point.use_case) ?? [];
      if (!operations.includes(point.operation)) operations.push(point.operation);
      found.set(point.use_case, operations);
    }
  return [...found];
}

interface TableProps extends Props {
  name: string;
  operations: string[];
  factor: number;
}

function OperationTable({ name, operations, orders, factor }: TableProps) {
  return (
    <PlainTable
      label={`${name}, response times`}
      heads={["Implementation", "Operation", ...["p50", "p90", "p99", "Answered", "Failed"].map(number)]}
      rows={Object.entries(orders.points).flatMap(([implementation, points]) =>
        operations.flatMap((operation) =>
          points
            .filter((one) => one.factor === factor && one.use_case === name && one.operation === operation)
            .map((point) => ({
              key: `${implementation} ${operation}`,
              cells: [
                ...[implementation, operation || "the whole arrival"],
                ...["50", "90", "99"].map((key) => figure(point, key)),
                ...[point.answered.toLocaleString("en"), point.failed.toLocaleString("en")],
              ],
            })),
        ),
      )}
    />
  );
}

/** A percentile with its interval; one that too few requests were beyond is not shown. */
function figure(point: OrderPoint, key: string): string {
  const estimate = point.percentiles[key];
  if (!estimate) return "–";
  const ends = span(estimate.low, estimate.high, seconds);
  return ends ? `${seconds(estimate.median)} ${ends}` : seconds(estimate.median);
}
