// A collapsible table of a chart's values.
import type { Cells } from "../export";

export function ValuesTable({ title, cells }: { title: string; cells: Cells }) {
  return (
    <details class="as-table">
      <summary>Show values as a table</summary>
      <div class="table-frame" tabIndex={0} role="region" aria-label={`${title}: values`}>
        <table>
          <thead>
            <tr>
              {cells.columns.map((column) => (
                <th scope="col" key={column}>
                  {column}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {cells.rows.map((row, index) => (
              <tr key={index}>
                {row.map((cell, column) => (
                  <td key={column}>
                    <bdi>{typeof cell === "number" ? Number(cell.toPrecision(6)) : (cell ?? "–")}</bdi>
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
