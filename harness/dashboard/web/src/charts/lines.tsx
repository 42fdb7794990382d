// A line chart with intervals, shaded ranges of x, names at the ends of the lines, and a crosshair over all series.
import type { ComponentChildren } from "preact";
import { line as linePath } from "d3-shape";
import { isNumber } from "../format";
import { Axes, type Box } from "./axes";
import { Chart } from "./frame";
import { shorten, spread } from "./labels";
import { markPath } from "./palette";
import { type Scale, scaleFor } from "./scales";
import {
  type Axis,
  crosshairStops,
  drawablePoints,
  isDrawable,
  isSparse,
  type Point,
  type Series,
  seriesCells,
} from "./series";

export type { Axis, Point, Series } from "./series";

const MIN_WIDTH_FOR_NAMES = 720; // minimum chart width in pixels for names at the ends of the lines
const NAMES_WIDTH = 150; // width in pixels reserved for these names
const MAX_NAMED_LINES = 12;

interface Props {
  title: string;
  heading?: "h2" | "h3";
  note?: ComponentChildren;
  series: Series[];
  x: Axis;
  y: Axis;
  columns: [string, string, string]; // column names of series, x and y
  spans?: { from: number; to: number; name: string }[];
  marks?: boolean;
  height?: number;
}

export function LineChart({ title, heading, note, series, x: xAxis, y: yAxis, columns, ...more }: Props) {
  const { spans = [], marks = true, height = 380 } = more;
  const points = drawablePoints(series);
  if (points.length === 0) return <p class="empty">{title}: no data to draw.</p>;
  const singleSeries = series.length === 1;
  return (
    <Chart
      title={title}
      heading={heading}
      note={note}
      height={height}
      cells={seriesCells(series, columns)}
      legend={singleSeries ? null : <Legend series={series} marks={marks} />}
    >
      {(width) => {
        const named = !singleSeries && width >= MIN_WIDTH_FOR_NAMES && series.length <= MAX_NAMED_LINES;
        const box: Box = { left: 64, right: width - (named ? NAMES_WIDTH : 16), top: 34, bottom: height - 46 };
        const xs = [...points.map((point) => point.x), ...spans.flatMap((span) => [span.from, span.to])];
        const ys = points.flatMap((point) => [point.y, point.low, point.high]).filter(isNumber);
        const x = scaleFor(xAxis.kind, xs, [box.left + 8, box.right - 8]);
        const y = scaleFor(yAxis.kind, ys, [box.bottom, box.top], { fromZero: yAxis.kind === "linear" });
        const xTicks = (xAxis.ticks ?? x.marks(Math.max(3, Math.floor(width / 110)))).map((value) => ({
          at: x(value),
          text: (xAxis.tick ?? xAxis.format)(value),
        }));
        const yTicks = y.marks(5).map((value) => ({ at: y(value), text: (yAxis.tick ?? yAxis.format)(value) }));
        return {
          stops: crosshairStops(series, x, y, xAxis, yAxis),
          svg: (
            <>
              {spans.map((span) => (
                <g class="span" key={span.name}>
                  <rect
                    x={x(span.from)}
                    y={box.top}
                    width={Math.max(0, x(span.to) - x(span.from))}
                    height={box.bottom - box.top}
                  />
                  <text x={x(span.from) + 6} y={box.top + 14}>
                    {span.name}
                  </text>
                </g>
              ))}
              <Axes box={box} xTicks={xTicks} yTicks={yTicks} xLabel={xAxis.label} yLabel={yAxis.label} />
              {series.map((item) => (
                <SeriesLine key={item.name} series={item} x={x} y={y} marks={marks} />
              ))}
              {named && <EndNames series={series} y={y} x={x} box={box} />}
            </>
          ),
        };
      }}
    </Chart>
  );
}

function SeriesLine({ series, x, y, marks }: { series: Series; x: Scale; y: Scale; marks: boolean }) {
  const path = linePath<Point>()
    .defined(isDrawable)
    .x((point) => x(point.x))
    .y((point) => y(point.y ?? 0));
  return (
    <g class={`${series.style.class}${series.strong ? " strong" : ""}`}>
      {!isSparse(series) && (
        <path class="line" fill="none" d={path(series.points) ?? ""} stroke-dasharray={series.style.dash} />
      )}
      {series.points.filter(isDrawable).map((point, index) => (
        <g key={index}>
          {isNumber(point.low) && isNumber(point.high) && point.low !== point.high && (
            <line class="error" x1={x(point.x)} x2={x(point.x)} y1={y(point.low)} y2={y(point.high)} />
          )}
          {(marks || isSparse(series)) && (
            <path class="point" transform={`translate(${x(point.x)},${y(point.y)})`} d={markPath(series.style.mark)} />
          )}
        </g>
      ))}
    </g>
  );
}

/** The lines' names, each next to the line's last point. Names that would overlap are moved apart. */
function EndNames({ series, x, y, box }: { series: Series[]; x: Scale; y: Scale; box: Box }) {
  const ends = series.flatMap((item) => {
    const last = item.points.filter(isDrawable).at(-1);
    return last ? [{ item, x: x(last.x), y: y(last.y) }] : [];
  });
  const placed = spread(
    ends.map((end) => end.y),
    15,
    [box.top + 4, box.bottom - 4],
  );
  return (
    <g aria-hidden="true">
      {placed.map(({ y: at, index }) => {
        const end = ends[index];
        if (!end) return null;
        return (
          <g key={end.item.name} class={end.item.style.class}>
            <path class="leader" fill="none" d={`M${end.x + 6},${end.y}L${box.right + 2},${at}H${box.right + 7}`} />
            <text class="end-name" x={box.right + 11} y={at} dy="0.32em">
              {shorten(end.item.name, NAMES_WIDTH - 18)}
            </text>
          </g>
        );
      })}
    </g>
  );
}

function Legend({ series, marks }: { series: Series[]; marks: boolean }) {
  return (
    <ul class="legend">
      {series.map((item) => (
        <li key={item.name} class={item.style.class}>
          <svg width="26" height="12" aria-hidden="true">
            {!isSparse(item) && <line class="line" x1="1" x2="25" y1="6" y2="6" stroke-dasharray={item.style.dash} />}
            {(marks || isSparse(item)) && (
              <path class="point" transform="translate(13,6)" d={markPath(item.style.mark)} />
            )}
          </svg>
          <bdi>{item.name}</bdi>
        </li>
      ))}
    </ul>
  );
}
