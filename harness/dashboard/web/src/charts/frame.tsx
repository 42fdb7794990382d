// What every chart has: a title, a size that follows the page, its figures as a table for those who do not see it, export.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Menu } from "../parts/basics";
import { type Cells, saveCsv, saveJson, savePng, saveSvg } from "../export";

export interface Tip {
  x: number;
  y: number;
  text: ComponentChildren;
}

interface Props {
  title: string;
  heading?: "h2" | "h3";
  note?: ComponentChildren;
  height: number;
  cells: Cells; // the figures shown
  legend?: ComponentChildren;
  children: (width: number, show: (tip: Tip | null) => void) => ComponentChildren;
}

export function Chart({ title, heading: Heading = "h2", note, height, cells, legend, children }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const svg = useRef<SVGSVGElement>(null);
  const [width, setWidth] = useState(0);
  const [tip, setTip] = useState<Tip | null>(null);
  const id = useId();
  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    setWidth(Math.floor(element.clientWidth));
    const watcher = new ResizeObserver(() => setWidth(Math.floor(element.clientWidth)));
    watcher.observe(element);
    return () => watcher.disconnect();
  }, []);
  return (
    <figure class="chart" aria-labelledby={id}>
      <figcaption>
        <Heading id={id}>{title}</Heading>
        <Menu label="Export" align="right">
          <div class="choices">
            <button type="button" onClick={() => svg.current && saveSvg(svg.current, title)}>
              SVG
            </button>
            <button type="button" onClick={() => svg.current && void savePng(svg.current, title)}>
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
      </figcaption>
      {note && <p class="quiet note">{note}</p>}
      {legend}
      <div class="canvas" ref={frame}>
        {width > 0 && (
          <svg
            ref={svg}
            width={width}
            height={height}
            viewBox={`0 0 ${width} ${height}`}
            role="img"
            aria-label={`${title}. The figures are in the table below.`}
            onPointerLeave={() => setTip(null)}
          >
            {children(width, setTip)}
          </svg>
        )}
        {tip && (
          <div
            class="hover"
            style={{ left: `${Math.min(Math.max(tip.x, 90), Math.max(90, width - 90))}px`, top: `${tip.y}px` }}
          >
            {tip.text}
          </div>
        )}
      </div>
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
    </figure>
  );
}
