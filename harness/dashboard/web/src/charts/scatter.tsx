// A scatter plot with a point for each implementation, intervals for both values, and names where they fit.
import { isNumber, span } from "../format";
import { Axes } from "./axes";
import { Chart } from "./frame";
import { type LabelBox, placeLabels, textWidth } from "./labels";
import { needsLogScale, type Scale, scaleFor } from "./scales";
import type { Axis } from "./series";

export interface ScatterValue {
  value: number;
  low: number | null;
  high: number | null;
}

export interface ScatterPoint {
  name: string;
  colorClass: string; // CSS class
  x: ScatterValue;
  y: ScatterValue;
  strong: boolean;
}

type ValueAxis = Pick<Axis, "label" | "format" | "tick"> & { unit?: number | undefined }; // unit: see scaleFor

interface Props {
  title: string;
  note: string;
  points: ScatterPoint[];
  x: ValueAxis;
  y: ValueAxis;
  columns: [string, string]; // column names of x and y
}

const HEIGHT = 440;
const LABEL_SHIFT = 8; // distance between a point and its name, in pixels
const MAX_SPAN = 6; // ratio of the largest to the smallest value above which an axis is logarithmic

export function ScatterChart({ title, note, points, x: xAxis, y: yAxis, columns }: Props) {
  if (points.length === 0) return <p class="empty">{title}: no data to draw.</p>;
  const all = (axis: "x" | "y"): number[] =>
    points.flatMap((point) => [point[axis].value, point[axis].low, point[axis].high]).filter(isNumber);
  const kind = (axis: "x" | "y") => (needsLogScale(all(axis), MAX_SPAN) ? "log" : "linear");
  const label = (axis: ValueAxis, of: "x" | "y"): string => `${axis.label}${kind(of) === "log" ? " (log scale)" : ""}`;
  const cells = {
    columns: ["implementation", ...columns.flatMap((name) => [name, `${name}_low`, `${name}_high`])],
    rows: points.map(({ name, x, y }) => [name, x.value, x.low, x.high, y.value, y.low, y.high]),
  };
  return (
    <Chart title={title} note={note} height={HEIGHT} cells={cells}>
      {(width) => {
        const box = { left: 64, right: width - 16, top: 34, bottom: HEIGHT - 46 };
        const x = scaleFor(kind("x"), all("x"), [box.left + 10, box.right - 10], { fromZero: true, unit: xAxis.unit });
        const y = scaleFor(kind("y"), all("y"), [box.bottom - 6, box.top + 6], { fromZero: true });
        const ticks = (axis: ValueAxis, scale: Scale, count: number) =>
          scale.marks(count).map((value) => ({ at: scale(value), text: (axis.tick ?? axis.format)(value) }));
        const boxes = points.map((point): LabelBox => {
          const [left, middle] = [x(point.x.value) + LABEL_SHIFT, y(point.y.value)];
          const size = textWidth(point.name);
          const fits = left + size <= box.right;
          return { left: fits ? left : left - 2 * LABEL_SHIFT - size, width: size, middle };
        });
        const named = placeLabels(
          boxes,
          points.map((point) => ({ x: x(point.x.value), y: y(point.y.value) })),
          points.map((point) => point.strong),
        );
        return {
          stops: points
            .map((point) => ({
              x: x(point.x.value),
              y: y(point.y.value),
              title: point.name,
              readings: [
                { name: yAxis.label, ...reading(point, point.y, yAxis, y(point.y.value)) },
                { name: xAxis.label, ...reading(point, point.x, xAxis, y(point.y.value)) },
              ],
            }))
            .sort((a, b) => a.x - b.x),
          svg: (
            <>
              <Axes
                box={box}
                xTicks={ticks(xAxis, x, Math.max(3, Math.floor(width / 110)))}
                yTicks={ticks(yAxis, y, 5)}
                xLabel={label(xAxis, "x")}
                yLabel={label(yAxis, "y")}
              />
              {points.map((point) => (
                <g key={point.name} class={point.colorClass}>
                  {hasInterval(point.x) && (
                    <line
                      class="error"
                      x1={x(point.x.low ?? 0)}
                      x2={x(point.x.high ?? 0)}
                      y1={y(point.y.value)}
                      y2={y(point.y.value)}
                    />
                  )}
                  {hasInterval(point.y) && (
                    <line
                      class="error"
                      x1={x(point.x.value)}
                      x2={x(point.x.value)}
                      y1={y(point.y.low ?? 0)}
                      y2={y(point.y.high ?? 0)}
                    />
                  )}
                  <circle class="point" cx={x(point.x.value)} cy={y(point.y.value)} r={point.strong ? 7 : 5} />
                </g>
              ))}
              {boxes.map((place, index) =>
                named[index] ? (
                  <text
                    key={points[index]?.name}
                    class={points[index]?.strong ? "effect-name strong-name" : "effect-name"}
                    x={place.left}
                    y={place.middle}
                    dy="0.32em"
                  >
                    {points[index]?.name}
                  </text>
                ) : null,
              )}
            </>
          ),
        };
      }}
    </Chart>
  );
}

function hasInterval({ low, high }: ScatterValue): boolean {
  return isNumber(low) && isNumber(high) && low > 0 && low !== high;
}

function reading(point: ScatterPoint, { value, low, high }: ScatterValue, axis: ValueAxis, y: number) {
  const text = [axis.format(value), span(low, high, axis.format)].filter(Boolean).join(" ");
  return { text, y, colorClass: point.colorClass };
}
