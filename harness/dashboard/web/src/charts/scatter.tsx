// Throughput against what it costs, with intervals both ways; log scales where the values span much.
import { isNumber, span, tick } from "../format";
import { Axes, thin } from "./axes";
import { Chart } from "./frame";
import { beside, shortened, textWidth } from "./labels";
import { type Look, markPath } from "./palette";
import { type Scale, scaleFor, wantsLog } from "./scales";

export interface Extent {
  value: number;
  low: number | null;
  high: number | null;
}

export interface Dot {
  name: string;
  x: Extent;
  y: Extent;
  look: Look;
  marked: boolean;
}

export interface ScatterAxis {
  label: string;
  format: (value: number) => string;
}

interface Props {
  title: string;
  note: string;
  dots: Dot[];
  x: ScatterAxis;
  y: ScatterAxis;
  columns: string[];
}

const MOST_COLOURED = 14;
const NAME = 150; // pixels of a name

export function ScatterChart({ title, note, dots, x: xAxis, y: yAxis, columns }: Props) {
  if (dots.length === 0) return <p class="empty">{title}: there is nothing to draw.</p>;
  const height = 400;
  const coloured = dots.length <= MOST_COLOURED;
  const all = (pick: (dot: Dot) => Extent): number[] =>
    dots.flatMap((dot) => [pick(dot).value, pick(dot).low, pick(dot).high]).filter(isNumber);
  const [xs, ys] = [all((dot) => dot.x), all((dot) => dot.y)];
  const kinds = {
    x: wantsLog(xs) ? ("log" as const) : ("linear" as const),
    y: wantsLog(ys) ? ("log" as const) : ("linear" as const),
  };
  const [first = "", ...others] = columns;
  return (
    <Chart
      title={title}
      note={note}
      height={height}
      cells={{
        columns: [first, ...others.flatMap((column) => [column, `${column}_low`, `${column}_high`])],
        rows: dots.map((dot) => [dot.name, dot.x.value, dot.x.low, dot.x.high, dot.y.value, dot.y.low, dot.y.high]),
      }}
    >
      {(width) => {
        const box = { left: 64, right: width - 20, top: 34, bottom: height - 46 };
        const x = scaleFor(kinds.x, padded(xs), [box.left + 10, box.right], true);
        const y = scaleFor(kinds.y, padded(ys), [box.bottom - 6, box.top], true);
        const ticks = (scale: Scale, count: number) =>
          scale.marks(count).map((value) => ({ at: scale(value), text: tick(value) }));
        const named = dots.filter((dot) => coloured || dot.marked);
        const places = beside(
          named.map((dot) => ({ x: x(dot.x.value), y: y(dot.y.value), width: Math.min(NAME, textWidth(dot.name)) })),
          14,
          { left: box.left, right: width, top: box.top - 16, bottom: box.bottom },
        );
        return {
          stops: dots
            .map((dot) => ({
              x: x(dot.x.value),
              y: y(dot.y.value),
              title: dot.name,
              readings: [
                { name: yAxis.label, text: told(dot.y, yAxis), y: y(dot.y.value), look: lookOf(dot, coloured) },
                { name: xAxis.label, text: told(dot.x, xAxis), y: y(dot.y.value), look: lookOf(dot, coloured) },
              ],
            }))
            .sort((a, b) => a.x - b.x),
          svg: (
            <>
              <Axes
                box={box}
                xTicks={thin(ticks(x, Math.max(3, Math.floor(width / 120))))}
                yTicks={ticks(y, 5)}
                xLabel={kinds.x === "log" ? `${xAxis.label} (log scale)` : xAxis.label}
                yLabel={kinds.y === "log" ? `${yAxis.label} (log scale)` : yAxis.label}
              />
              {dots.map((dot) => (
                <g key={dot.name} class={`${lookOf(dot, coloured)}${dot.marked ? " strong" : ""}`}>
                  <Bars dot={dot} x={x} y={y} />
                  <path
                    class="point"
                    transform={`translate(${x(dot.x.value)},${y(dot.y.value)})`}
                    d={markPath(coloured ? dot.look.mark : "circle", dot.marked ? 7 : 5)}
                  />
                </g>
              ))}
              {named.map((dot, index) => {
                const place = places[index];
                return place ? (
                  <text key={dot.name} class="dot-name" x={place.x} y={place.y} dy="0.32em">
                    {shortened(dot.name, NAME)}
                  </text>
                ) : null;
              })}
            </>
          ),
        };
      }}
    </Chart>
  );
}

function Bars({ dot, x, y }: { dot: Dot; x: Scale; y: Scale }) {
  return (
    <>
      {isNumber(dot.x.low) && isNumber(dot.x.high) && (
        <line class="error" x1={x(dot.x.low)} x2={x(dot.x.high)} y1={y(dot.y.value)} y2={y(dot.y.value)} />
      )}
      {isNumber(dot.y.low) && isNumber(dot.y.high) && (
        <line class="error" x1={x(dot.x.value)} x2={x(dot.x.value)} y1={y(dot.y.low)} y2={y(dot.y.high)} />
      )}
    </>
  );
}

function told(extent: Extent, axis: ScatterAxis): string {
  return [axis.format(extent.value), span(extent.low, extent.high, axis.format)].filter(Boolean).join(" ");
}

function lookOf(dot: Dot, coloured: boolean): string {
  return coloured || dot.marked ? dot.look.class : "series-quiet";
}

function padded(values: readonly number[]): number[] {
  return [...values, Math.max(...values) * 1.05];
}
