// The order service's response times by use case and operation at the selected load factor.
import type { ScenarioPoint, ScenarioResults } from "../documents";
import { seconds, span } from "../format";
import { usePage } from "../hooks";
import { number, PlainTable } from "../parts/plain-table";

interface Props {
  orders: ScenarioResults;
}

export function OrderOperations({ orders }: Props) {
  const factors = orders.tables.map((table) => table.factor);
  const { route, go } = usePage();
  const selected = factors.find((factor) => `x${factor}` === route.load) ?? factors.at(-1) ?? 1;
  const cases = useCases(orders, selected);
  return (
    <>
      <p>
        <label>
          Load factor{" "}
          <select value={`x${selected}`} onChange={(event) => go({ load: event.currentTarget.value })}>
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
          <OperationTable name={name} operations={operations} orders={orders} factor={selected} />
        </section>
      ))}
    </>
  );
}

/** Return each use case with its operations, in recorded order. The operation "" stands for the whole use case. */
function useCases(orders: ScenarioResults, factor: number): [string, string[]][] {
  const operationsByCase = new Map<string, string[]>();
  for (const points of Object.values(orders.points))
    for (const point of points) {
      if (point.factor !== factor) continue;
      const operations = operationsByCase.get(point.use_case) ?? [];
      if (!operations.includes(point.operation)) operations.push(point.operation);
      operationsByCase.set(point.use_case, operations);
    }
  return [...operationsByCase];
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
      heads={["Implementation", "Operation", ...["p50", "p90", "p99", "Responses", "Failures"].map(number)]}
      rows={Object.entries(orders.points).flatMap(([implementation, points]) =>
        operations.flatMap((operation) =>
          points
            .filter((point) => point.factor === factor && point.use_case === name && point.operation === operation)
            .map((point) => ({
              key: `${implementation} ${operation}`,
              cells: [
                ...[implementation, operation || "whole arrival"],
                ...["50", "90", "99"].map((key) => formatPercentile(point, key)),
                ...[point.answered.toLocaleString("en"), point.failed.toLocaleString("en")],
              ],
            })),
        ),
      )}
    />
  );
}

/** Format a percentile with its interval, or as an en dash if there were too few requests to estimate it. */
function formatPercentile(point: ScenarioPoint, key: string): string {
  const estimate = point.percentiles[key];
  if (!estimate) return "–";
  const ends = span(estimate.low, estimate.high, seconds);
  return ends ? `${seconds(estimate.median)} ${ends}` : seconds(estimate.median);
}
