// Rows of the columns in which a long table is sent: harness/dashboard/columns.py says how. Pure.
import type { RunDocument } from "./documents";

interface Inner {
  columns: Record<string, Column>;
}
type Column = { same: unknown } | { each: unknown[] } | (Inner & { none: number[] });
export type Columns = Inner & { count: number };

/** The rows of a table's columns; values that all rows share are one object. */
export function rowsOf<Row>({ columns, count }: Columns): Row[] {
  const names = Object.keys(columns);
  const values = Object.values(columns).map((column) => valuesOf(column, count));
  const rows: Record<string, unknown>[] = [];
  for (let index = 0; index < count; index++) {
    const row: Record<string, unknown> = {};
    for (let at = 0; at < names.length; at++) row[names[at] ?? ""] = values[at]?.[index];
    rows.push(row);
  }
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions -- the fields of the model that was packed
  return rows as Row[];
}

function valuesOf(column: Column, count: number): unknown[] {
  if ("each" in column) return column.each;
  if ("same" in column) return new Array<unknown>(count).fill(column.same);
  const values: unknown[] = rowsOf({ columns: column.columns, count });
  for (const index of column.none) values[index] = null;
  return values;
}

/** A run's document with its tables as rows; those of a test type are made when they are first asked for. */
export function unpacked(doc: RunDocument): RunDocument {
  const { run, ranking } = doc;
  later(run, "implementations");
  later(ranking, "overall");
  for (const { headline } of Object.values(ranking.test_types)) later(headline, "rows");
  return doc;
}

function later<Holder extends object>(holder: Holder, key: keyof Holder): void {
  const value: unknown = holder[key];
  if (!isColumns(value)) return;
  const put = (made: Partial<PropertyDescriptor>): unknown =>
    Object.defineProperty(holder, key, { configurable: true, enumerable: true, ...made });
  put({
    get: () => {
      const rows = rowsOf(value);
      put({ value: rows });
      return rows;
    },
  });
}

function isColumns(value: unknown): value is Columns {
  return typeof value === "object" && value !== null && "columns" in value && "count" in value;
}
