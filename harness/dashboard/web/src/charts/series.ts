// Pure functions that compute a line chart's table of values and crosshair positions from the series.
import type { Cells } from "../export";
import { isNumber, span } from "../format";
import type { Stop } from "./crosshair";
import type { SeriesStyle } from "./palette";
import type { Scale } from "./scales";

export interface Point {
  x: number;
  y: number | null;
  low?: number | null;
  high?: number | null;
  note?: string; // text to show instead of the x value
}

export interface Series {
  name: string;
  style: SeriesStyle;
  points: Point[];
  strong?: boolean;
  isTimeSeries?: boolean; // if true, few points are drawn without a line, which would suggest values between them
}

const MIN_LINE_POINTS = 5; // minimum number of points for a time series with a line

export interface Axis {
  label: string;
  kind: "linear" | "log";
  format: (value: number) => string; // formats values in the crosshair
  tick?: (value: number) => string; // formats tick labels; default: `format`
  ticks?: number[];
}

/** Return whether a time series has too few points for a line. */
export function isSparse(series: Series): boolean {
  return series.isTimeSeries === true && series.points.filter(isDrawable).length < MIN_LINE_POINTS;
}

/** Return all points with finite coordinates. */
export function drawablePoints(series: readonly Series[]): (Point & { y: number })[] {
  return series.flatMap((item) => item.points.filter(isDrawable));
}

export function isDrawable(point: Point): point is Point & { y: number } {
  return isNumber(point.x) && isNumber(point.y);
}

/** Return a table row for each point. If any point has an interval, the table has columns for the bounds. */
export function seriesCells(series: readonly Series[], columns: readonly [string, string, string]): Cells {
  const withInterval = series.some((item) => item.points.some((point) => isNumber(point.low)));
  return {
    columns: withInterval ? [...columns, "low", "high"] : [...columns],
    rows: series.flatMap((item) =>
      item.points.map((point) => {
        const row = [item.name, point.note ?? point.x, point.y];
        return withInterval ? [...row, point.low ?? null, point.high ?? null] : row;
      }),
    ),
  };
}

/** Return a crosshair stop for each x value. Each stop lists the series with a point at this x, from top to bottom. */
export function crosshairStops(series: readonly Series[], x: Scale, y: Scale, xAxis: Axis, yAxis: Axis): Stop[] {
  const byX = new Map<number, Stop>();
  for (const item of series)
    for (const point of item.points) {
      if (!isDrawable(point)) continue;
      const stop = byX.get(point.x) ?? {
        x: x(point.x),
        title: point.note ?? `${xAxis.format(point.x)}`,
        readings: [],
      };
      const interval = span(point.low, point.high, yAxis.format);
      stop.readings.push({
        name: item.name,
        colorClass: item.style.class,
        y: y(point.y),
        text: [yAxis.format(point.y), interval].filter(Boolean).join(" "),
      });
      byX.set(point.x, stop);
    }
  const stops = [...byX.values()].sort((a, b) => a.x - b.x);
  for (const stop of stops) stop.readings.sort((a, b) => a.y - b.y);
  return stops;
}
