// The frame around every chart: title, responsive size, crosshair, export menu and an accessible table of the values.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Cells } from "../export";
import { ExportMenu } from "../parts/export-menu";
import { Crosshair, type Stop } from "./crosshair";
import { ValuesTable } from "./figures";

export interface ChartDrawing {
  svg: ComponentChildren;
  stops?: Stop[]; // crosshair positions, from left to right
}

interface Props {
  title: string;
  heading?: "h2" | "h3";
  note?: ComponentChildren;
  height: number;
  cells: Cells; // the chart's values, for the table and for export
  legend?: ComponentChildren;
  children: (width: number) => ChartDrawing;
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
              aria-label={`${title}. The table below lists the values.`}
            >
              {drawing.svg}
            </svg>
            {drawing.stops && drawing.stops.length > 0 && (
              <Crosshair title={title} width={width} height={height} stops={drawing.stops} />
            )}
          </>
        )}
      </div>
      <ValuesTable title={title} cells={cells} />
    </figure>
  );
}
