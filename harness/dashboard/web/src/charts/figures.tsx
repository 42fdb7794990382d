// A chart's figures as a table.
import type { Cells } from "../export";

export function FiguresTable({ title, cells }: { title: string; cells: Cells }) {
  return (
    <details class="as-table">
      <summary>Figures as a table</summary>
      <div class="table-frame" tabIndex={0} role="region" aria-label={`${title}: figures`}>
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
