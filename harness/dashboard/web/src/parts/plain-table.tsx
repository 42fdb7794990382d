// A scrollable table of values. Each row has a header cell, and numbers are right-aligned.
import type { ComponentChildren } from "preact";

type Head = string | { number: string; class?: string }; // `class` applies to the whole column
interface Cell {
  show: ComponentChildren;
  class?: string;
  title?: string;
}
interface Row {
  key: string;
  class?: string;
  cells: (ComponentChildren | Cell)[];
}
interface Props {
  label: string; // accessible name
  heads: readonly Head[];
  rows: readonly Row[];
  header?: number; // index of the column with the row headers
  cards?: boolean; // whether narrow pages show each row as a card, labelled with the column headers
}

/** Return the header for a column of numbers, which is right-aligned. */
export function number(text: string): Head {
  return { number: text };
}

export function PlainTable({ label, heads, rows, header = 0, cards = false }: Props) {
  const kinds = heads.map((head) => (typeof head === "string" ? "" : `number ${head.class ?? ""}`.trim()));
  return (
    <div class="table-frame" tabIndex={0} role="region" aria-label={label}>
      <table class={cards ? "plain-table cards" : "plain-table"}>
        <thead>
          <tr>
            {heads.map((head, index) => (
              <th scope="col" class={kinds[index] ?? ""} key={index}>
                {typeof head === "string" ? head : head.number}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.key} class={row.class ?? ""}>
              {row.cells.map((value, index) => {
                const cell = isCell(value) ? value : { show: value };
                const show = typeof cell.show === "string" ? <bdi>{cell.show}</bdi> : cell.show;
                if (index === header)
                  return (
                    <th scope="row" key={index}>
                      {show}
                    </th>
                  );
                const head = heads[index] ?? "";
                return (
                  <td
                    class={`${kinds[index] ?? ""} ${cell.class ?? ""}`.trim()}
                    title={cell.title}
                    data-label={cards && index > header ? (typeof head === "string" ? head : head.number) : undefined}
                    key={index}
                  >
                    {show}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function isCell(value: unknown): value is Cell {
  return typeof value === "object" && value !== null && "show" in value;
}
