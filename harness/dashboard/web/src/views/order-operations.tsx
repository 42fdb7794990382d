// The order service's use cases, operation by operation: what each customer waited for, at one factor of the arrivals.
import { useState } from "preact/hooks";
import type { OrderPoint, Orders } from "../documents";
import { seconds, span } from "../format";

interface Props {
  orders: Orders;
}

export function OrderOperations({ orders }: Props) {
  const factors = orders.tables.map((table) => table.factor);
  const [chosen, choose] = useState(factors.at(-1) ?? 1);
  const cases = useCases(orders, chosen);
  return (
    <>
      <p>
        <label>
          Factor of the arrivals{" "}
          <select value={String(chosen)} onChange={(event) => choose(Number(event.currentTarget.value))}>
            {factors.map((value) => (
              <option key={value} value={String(value)}>
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
function useCases(orders: Orders, factor: number): [string, string[]][] {
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
    <div class="table-frame" tabIndex={0} role="region" aria-label={`${name}, response times`}>
      <table class="plain-table">
        <thead>
          <tr>
            <th scope="col">Implementation</th>
            <th scope="col">Operation</th>
            {["p50", "p90", "p99", "Answered", "Failed"].map((head) => (
              <th scope="col" class="number" key={head}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {Object.entries(orders.points).flatMap(([implementation, points]) =>
            operations.flatMap((operation) =>
              points
                .filter((one) => one.factor === factor && one.use_case === name && one.operation === operation)
                .map((point) => (
                  <tr key={`${implementation} ${operation}`}>
                    <th scope="row">
                      <bdi>{implementation}</bdi>
                    </th>
                    <td>{operation || "the whole arrival"}</td>
                    {["50", "90", "99"].map((key) => (
                      <td class="number" key={key}>
                        {figure(point, key)}
                      </td>
                    ))}
                    <td class="number">{point.answered.toLocaleString("en")}</td>
                    <td class="number">{point.failed.toLocaleString("en")}</td>
                  </tr>
                )),
            ),
          )}
        </tbody>
      </table>
    </div>
  );
}

/** A percentile with its interval; one that too few requests were beyond is not shown. */
function figure(point: OrderPoint, key: string): string {
  const estimate = point.percentiles[key];
  if (!estimate) return "–";
  const ends = span(estimate.low, estimate.high, seconds);
  return ends ? `${seconds(estimate.median)} ${ends}` : seconds(estimate.median);
}
