// A chart's figures as a table, and its export.
import { type Cells, saveCsv, saveJson, savePng, saveSvg } from "../export";
import { Menu } from "../parts/menu";

export function ChartExport({ title, cells, svg }: { title: string; cells: Cells; svg: () => SVGSVGElement | null }) {
  const drawing = (keep: (svg: SVGSVGElement, name: string) => unknown): void => {
    const element = svg();
    if (element) void keep(element, title);
  };
  return (
    <Menu label="Export" align="right">
      <div class="choices">
        <button type="button" onClick={() => drawing(saveSvg)}>
          SVG
        </button>
        <button type="button" onClick={() => drawing(savePng)}>
          PNG
        </button>
        <button type="button" onClick={() => saveCsv(cells, title)}>
          CSV
        </button>
        <button type="button" onClick={() => saveJson(cells, title)}>
          JSON
        </button>
      </div>
    </Menu>
  );
}

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
