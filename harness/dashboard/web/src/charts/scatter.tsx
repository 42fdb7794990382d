// Throughput against what it costs: CPU per request, or peak memory.
import { scaleLinear } from "d3-scale";
import { rate, tick } from "../format";
import { Axes, type Tick } from "./axes";
import { Chart } from "./frame";
import { type Look, markPath } from "./palette";

export interface Dot {
  name: string;
  x: number;
  y: number;
  look: Look;
  marked: boolean;
}

export function ScatterChart({
  title,
  note,
  dots,
  xLabel,
  formatX,
  columns,
}: {
  title: string;
  note: string;
  dots: Dot[];
  xLabel: string;
  formatX: (value: number) => string;
  columns: string[];
}) {
  if (dots.length === 0) return <p class="empty">{title}: there is nothing to draw.</p>;
  const height = 380;
  const named = dots.length <= 14;
  return (
    <Chart
      title={title}
      note={note}
      height={height}
      cells={{ columns, rows: dots.map((dot) => [dot.name, dot.x, dot.y]) }}
    >
      {(width, show) => {
        const box = { left: 62, right: width - 20, top: 28, bottom: height - 44 };
        const x = scaleLinear()
          .domain([0, Math.max(...dots.map((dot) => dot.x)) * 1.08])
          .nice()
          .range([box.left, box.right]);
        const y = scaleLinear()
          .domain([0, Math.max(...dots.map((dot) => dot.y)) * 1.08])
          .nice()
          .range([box.bottom, box.top]);
        const xTicks = x
          .ticks(Math.max(3, Math.floor(width / 120)))
          .map((value): Tick => ({ at: x(value), text: tick(value) }));
        const yTicks = y.ticks(5).map((value): Tick => ({ at: y(value), text: tick(value) }));
        const names = named
          ? places(
              dots.map((dot) => ({ x: x(dot.x), y: y(dot.y), name: dot.name })),
              box.right,
            )
          : [];
        return (
          <>
            <Axes box={box} xTicks={xTicks} yTicks={yTicks} xLabel={xLabel} yLabel="requests/s" />
            {dots.map((dot, index) => (
              <g
                key={dot.name}
                class={`${named || dot.marked ? dot.look.class : "series-quiet"}${dot.marked ? " strong" : ""}`}
                onPointerEnter={() =>
                  show({
                    x: x(dot.x),
                    y: y(dot.y),
                    text: (
                      <>
                        <strong>
                          <bdi>{dot.name}</bdi>
                        </strong>
                        <br />
                        {rate(dot.y)} requests/s
                        <br />
                        {formatX(dot.x)}
                      </>
                    ),
                  })
                }
              >
                <path
                  class="point"
                  transform={`translate(${x(dot.x)},${y(dot.y)})`}
                  d={markPath(named ? dot.look.mark : "circle", dot.marked ? 7 : 5.5)}
                />
                {(names[index] || dot.marked) && (
                  <text
                    class="dot-name"
                    x={names[index]?.x ?? x(dot.x) + 9}
                    y={names[index]?.y ?? y(dot.y)}
                    dy="0.32em"
                    text-anchor={names[index]?.anchor ?? "start"}
                  >
                    {short(dot.name)}
                  </text>
                )}
              </g>
            ))}
          </>
        );
      }}
    </Chart>
  );
}

function short(name: string): string {
  return name.length > 24 ? `${name.slice(0, 23)}…` : name;
}

/** Where names stand: beside their dot, on the left near the edge, moved down where they would overlap. */
function places(
  dots: { x: number; y: number; name: string }[],
  right: number,
): { x: number; y: number; anchor: "start" | "end" }[] {
  const taken: { y: number; x: number; width: number }[] = [];
  return dots.map((dot) => {
    const width = short(dot.name).length * 7.2;
    const left = dot.x + 10 + width > right;
    const x = left ? dot.x - 10 : dot.x + 10;
    const start = left ? x - width : x;
    let y = dot.y;
    while (
      taken.some((other) => Math.abs(other.y - y) < 14 && start < other.x + other.width && other.x < start + width)
    )
      y += 14;
    taken.push({ x: start, y, width });
    return { x, y, anchor: left ? ("end" as const) : ("start" as const) };
  });
}
