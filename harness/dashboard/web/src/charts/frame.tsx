// What every chart has: a title, a size that follows the page, a crosshair by pointer, touch and keyboard, its figures as
// a table for those who do not see it, export.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Cells } from "../export";
import { ExportMenu } from "../parts/export-menu";
import { Crosshair, type Stop } from "./crosshair";
import { FiguresTable } from "./figures";

export interface Drawing {
  svg: ComponentChildren;
  stops?: Stop[]; // where the crosshair can stand, from left to right
}

interface Props {
  title: string;
  heading?: "h2" | "h3";
  note?: ComponentChildren;
  height: number;
  cells: Cells; // the figures shown
  legend?: ComponentChildren;
  children: (width: number) => Drawing;
}

export function Chart({ title, heading: Heading = "h2", note, height, cells, legend, children }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const svg = useRef<SVGSVGElement>(null);
  const [width, setWidth] = useState(0);
  const id = useId();
  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    setWidth(Math.floor(element.clientWidth));
    const watcher = new ResizeObserver(() => setWidth(Math.floor(element.clientWidth)));
    watcher.observe(element);
    return () => watcher.disconnect();
  }, []);
  const drawing = width > 0 ? children(width) : null;
  return (
    <figure class="chart" aria-labelledby={id}>
      <figcaption>
        <Heading id={id}>{title}</Heading>
        <ExportMenu title={title} cells={() => cells} draw={(save) => svg.current && save(svg.current, title)} />
      </figcaption>
      {note && <p class="quiet note">{note}</p>}
      {legend}
      <div class="canvas" ref={frame} style={{ minHeight: `${height}px` }}>
        {drawing && (
          <>
            <svg
              ref={svg}
              width={width}
              height={height}
              viewBox={`0 0 ${width} ${height}`}
              role="img"
              aria-label={`${title}. Its figures are in the table below.`}
            >
              {drawing.svg}
            </svg>
            {drawing.stops && drawing.stops.length > 0 && (
              <Crosshair title={title} width={width} height={height} stops={drawing.stops} />
            )}
          </>
        )}
      </div>
      <FiguresTable title={title} cells={cells} />
    </figure>
  );
}
