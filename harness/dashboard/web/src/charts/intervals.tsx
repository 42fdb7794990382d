// One row an implementation: a point with its interval on a common axis, for any metric (a percentile, a capacity at a
// latency goal, memory). Log scale where the values span much.
import type { ComponentChildren } from "preact";
import { isNumber, span } from "../format";
import { Axes, thin } from "./axes";
import { Chart } from "./frame";
import { shortened } from "./labels";
import { scaleFor, wantsLog } from "./scales";

export interface IntervalRow {
  name: string;
  value: number;
  low: number | null;
  high: number | null;
  look: string; // class of its colour
}

interface Props {
  title: string;
  note?: ComponentChildren;
  rows: IntervalRow[];
  label: string; // of the axis, with its unit
  format: (value: number) => string;
  column: string; // of the table
}

const LINE = 28;

export function IntervalChart({ title, note, rows, label, format, column }: Props) {
  if (rows.length === 0) return <p class="empty">{title}: there is nothing to draw.</p>;
  const height = rows.length * LINE + 84;
  const values = rows.flatMap((row) => [row.value, row.low, row.high]).filter(isNumber);
  const kind = wantsLog(values) ? "log" : "linear";
  const cells = {
    columns: ["implementation", column, "low", "high"],
    rows: rows.map((row) => [row.name, row.value, row.low, row.high]),
  };
  return (
    <Chart title={title} note={note} height={height} cells={cells}>
      {(width) => {
        const names = width < 560 ? 110 : 200;
        const box = { left: names, right: width - (width < 560 ? 14 : 220), top: 14, bottom: height - 50 };
        const x = scaleFor(kind, values, [box.left, box.right], true);
        const xTicks = thin(
          x.marks(Math.max(3, Math.floor(width / 130))).map((value) => ({ at: x(value), text: format(value) })),
        );
        const at = (index: number): number => box.top + index * LINE + LINE / 2;
        return {
          stops: rows.map((row, index) => ({
            x: x(row.value),
            y: at(index),
            title: row.name,
            readings: [{ name: label, text: told(row, format), y: at(index), look: row.look }],
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
                <g key={row.name} class={row.look}>
                  <line class="grid" x1={box.left} x2={box.right} y1={at(index)} y2={at(index)} />
                  <text class="effect-name" x={box.left - 10} y={at(index)} dy="0.32em" text-anchor="end">
                    {shortened(row.name, names - 14)}
                  </text>
                  {isNumber(row.low) && isNumber(row.high) && (
                    <line class="error wide" x1={x(row.low)} x2={x(row.high)} y1={at(index)} y2={at(index)} />
                  )}
                  <circle class="point" cx={x(row.value)} cy={at(index)} r="5" />
                  {width >= 560 && (
                    <text class="effect-value" x={box.right + 12} y={at(index)} dy="0.32em">
                      {told(row, format)}
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

function told(row: IntervalRow, format: (value: number) => string): string {
  return [format(row.value), span(row.low, row.high, format)].filter(Boolean).join(" ");
}
