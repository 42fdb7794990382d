// The series of a line chart, and what follows from them: its figures as a table, the crosshair's places. Pure.
import type { Cells } from "../export";
import { isNumber, span } from "../format";
import type { Stop } from "./crosshair";
import type { Look } from "./palette";
import type { Scale } from "./scales";

export interface Point {
  x: number;
  y: number | null;
  low?: number | null;
  high?: number | null;
  note?: string; // instead of the x value in words
}

export interface Series {
  name: string;
  look: Look;
  points: Point[];
  strong?: boolean;
}

export interface Axis {
  label: string;
  kind: "linear" | "log";
  format: (value: number) => string; // in words
  tick?: (value: number) => string; // on the axis
  ticks?: number[];
}

/** The points that can be drawn. */
export function drawable(series: readonly Series[]): (Point & { y: number })[] {
  return series.flatMap((one) => one.points.filter(isDrawable));
}

export function isDrawable(point: Point): point is Point & { y: number } {
  return isNumber(point.x) && isNumber(point.y);
}

/** One line a point; two more columns where there are intervals. */
export function cellsOf(series: readonly Series[], columns: readonly [string, string, string]): Cells {
  const withInterval = series.some((one) => one.points.some((point) => isNumber(point.low)));
  return {
    columns: withInterval ? [...columns, "low", "high"] : [...columns],
    rows: series.flatMap((one) =>
      one.points.map((point) => {
        const row = [one.name, point.note ?? point.x, point.y];
        return withInterval ? [...row, point.low ?? null, point.high ?? null] : row;
      }),
    ),
  };
}

/** A place for each value of the x axis with every series that has a point there, from the top of the chart down. */
export function stopsOf(series: readonly Series[], x: Scale, y: Scale, xAxis: Axis, yAxis: Axis): Stop[] {
  const byX = new Map<number, Stop>();
  for (const one of series)
    for (const point of one.points) {
      if (!isDrawable(point)) continue;
      const stop = byX.get(point.x) ?? {
        x: x(point.x),
        title: point.note ?? `${xAxis.format(point.x)}`,
        readings: [],
      };
      const interval = span(point.low, point.high, yAxis.format);
      stop.readings.push({
        name: one.name,
        look: one.look.class,
        y: y(point.y),
        text: [yAxis.format(point.y), interval].filter(Boolean).join(" "),
      });
      byX.set(point.x, stop);
    }
  const stops = [...byX.values()].sort((a, b) => a.x - b.x);
  for (const stop of stops) stop.readings.sort((a, b) => a.y - b.y);
  return stops;
}
