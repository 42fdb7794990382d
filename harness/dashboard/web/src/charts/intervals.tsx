// A chart with a row for each implementation: the value as a point and the interval as a bar, on a common axis. The
// scale is logarithmic if the values span a wide range.
import type { ComponentChildren } from "preact";
import { isNumber, span } from "../format";
import { Axes } from "./axes";
import { Chart } from "./frame";
import { shorten } from "./labels";
import { scaleFor, needsLogScale } from "./scales";

export interface IntervalRow {
  name: string;
  value: number;
  low: number | null;
  high: number | null;
  colorClass: string; // CSS class
}

interface Props {
  title: string;
  note?: ComponentChildren;
  rows: IntervalRow[];
  label: string; // axis label with unit
  format: (value: number) => string;
  column: string; // column name in the table
}

const ROW_HEIGHT = 28;

export function IntervalChart({ title, note, rows, label, format, column }: Props) {
  if (rows.length === 0) return <p class="empty">{title}: no data to draw.</p>;
  const height = rows.length * ROW_HEIGHT + 84;
  const values = rows.flatMap((row) => [row.value, row.low, row.high]).filter(isNumber);
  const kind = needsLogScale(values) ? "log" : "linear";
  const cells = {
    columns: ["implementation", column, "low", "high"],
    rows: rows.map((row) => [row.name, row.value, row.low, row.high]),
  };
  return (
    <Chart title={title} note={note} height={height} cells={cells}>
      {(width) => {
        const names = width < 560 ? 110 : 200;
        const box = { left: names, right: width - (width < 560 ? 14 : 220), top: 14, bottom: height - 50 };
        const x = scaleFor(kind, values, [box.left, box.right], { fromZero: true });
        const xTicks = x
          .marks(Math.max(3, Math.floor(width / 130)))
          .map((value) => ({ at: x(value), text: format(value) }));
        const at = (index: number): number => box.top + index * ROW_HEIGHT + ROW_HEIGHT / 2;
        return {
          stops: rows.map((row, index) => ({
            x: x(row.value),
            y: at(index),
            title: row.name,
            readings: [{ name: label, text: formatRow(row, format), y: at(index), colorClass: row.colorClass }],
          })),
          svg: (
            <>
              <Axes
                box={box}
                xTicks={xTicks}
                yTicks={[]}
                xLabel={kind === "log" ? `${label} (log scale)` : label}
                yLabel=""
              />
              {rows.map((row, index) => (
                <g key={row.name} class={row.colorClass}>
                  <line class="grid" x1={box.left} x2={box.right} y1={at(index)} y2={at(index)} />
                  <text class="effect-name" x={box.left - 10} y={at(index)} dy="0.32em" text-anchor="end">
                    {shorten(row.name, names - 14)}
                  </text>
                  {isNumber(row.low) && isNumber(row.high) && (
                    <line class="error wide" x1={x(row.low)} x2={x(row.high)} y1={at(index)} y2={at(index)} />
                  )}
                  <circle class="point" cx={x(row.value)} cy={at(index)} r="5" />
                  {width >= 560 && (
                    <text class="effect-value" x={box.right + 12} y={at(index)} dy="0.32em">
                      {formatRow(row, format)}
                    </text>
                  )}
                </g>
              ))}
            </>
          ),
        };
      }}
    </Chart>
  );
}

function formatRow(row: IntervalRow, format: (value: number) => string): string {
  return [format(row.value), span(row.low, row.high, format)].filter(Boolean).join(" ");
}
