// A forest plot: ratios with their intervals on a log axis around 1.
import { scaleLog } from "d3-scale";
import type { Ratio } from "../documents";
import { isNumber, times, timesWithInterval } from "../format";
import { Axes, type Tick, thin } from "./axes";
import { Chart } from "./frame";

export interface Effect {
  name: string;
  detail: string;
  ratio: Ratio;
}

const LINE = 30;
const SIDE = 96; // pixels that "slower" and "faster" need beside the line at 1

export function ForestPlot({
  title,
  note,
  effects,
  left,
  right,
  floor,
}: {
  title: string;
  note: preact.ComponentChildren;
  effects: Effect[];
  left: string;
  right: string;
  floor: number | null;
}) {
  if (effects.length === 0) return <p class="empty">{title}: there is nothing to draw.</p>;
  const height = effects.length * LINE + 92;
  const cells = {
    columns: ["comparison", "detail", "ratio", "low", "high"],
    rows: effects.map(({ name, detail, ratio }) => [name, detail, ratio.value, ratio.low, ratio.high]),
  };
  const values = effects
    .flatMap(({ ratio }) => [ratio.value, ratio.low, ratio.high])
    .filter((value): value is number => isNumber(value) && value > 0);
  const low = Math.min(0.97, ...values);
  const high = Math.max(1.03, ...values);
  return (
    <Chart title={title} note={note} height={height} cells={cells}>
      {(width) => {
        const narrow = width < 560;
        const nameWidth = narrow ? 104 : 190;
        const box = { left: nameWidth, right: width - (narrow ? 12 : 168), top: 34, bottom: height - 44 };
        const x = scaleLog()
          .domain([low ** 1.06, high ** 1.06])
          .range([box.left, box.right])
          .clamp(true);
        const xTicks = thin(
          ticks(low, high).map((value): Tick => ({ at: x(value), text: times(value) })),
          46,
        );
        return (
          <>
            {isNumber(floor) && floor > 0 && (
              <g class="span">
                <rect
                  x={x(1 / (1 + floor))}
                  y={box.top}
                  width={Math.max(1, x(1 + floor) - x(1 / (1 + floor)))}
                  height={box.bottom - box.top}
                />
              </g>
            )}
            <Axes box={box} xTicks={xTicks} yTicks={[]} xLabel="" yLabel="" />
            <line class="unity" x1={x(1)} x2={x(1)} y1={box.top - 4} y2={box.bottom} />
            <text class="axis-name" x={Math.max(x(1) - 8, box.left + SIDE)} y={box.top - 12} text-anchor="end">
              {narrow ? "← slower" : `← ${left}`}
            </text>
            <text class="axis-name" x={Math.min(x(1) + 8, width - SIDE)} y={box.top - 12} text-anchor="start">
              {narrow ? "faster →" : `${right} →`}
            </text>
            {effects.map(({ name, detail, ratio }, index) => {
              const y = box.top + index * LINE + LINE / 2 + 4;
              const certain = isNumber(ratio.low) && isNumber(ratio.high) && (ratio.low > 1 || ratio.high < 1);
              return (
                <g key={`${name} ${detail}`} class={certain ? "effect certain" : "effect"}>
                  <text class="effect-name" x={box.left - 10} y={y} dy="0.32em" text-anchor="end">
                    {name.length > (narrow ? 14 : 26) ? `${name.slice(0, narrow ? 13 : 25)}…` : name}
                    <title>{`${name} ${detail}`}</title>
                  </text>
                  {isNumber(ratio.low) && isNumber(ratio.high) && ratio.low > 0 && (
                    <path
                      class="error"
                      fill="none"
                      d={`M${x(ratio.low)},${y - 4}v8M${x(ratio.low)},${y}H${x(ratio.high)}M${x(ratio.high)},${y - 4}v8`}
                    />
                  )}
                  <rect class="point" x={x(ratio.value) - 3.5} y={y - 3.5} width="7" height="7" />
                  {!narrow && (
                    <text class="effect-value" x={box.right + 12} y={y} dy="0.32em">
                      {timesWithInterval(ratio)}
                    </text>
                  )}
                </g>
              );
            })}
          </>
        );
      }}
    </Chart>
  );
}

/** Round ratios within the reach, denser the nearer it is to 1; always 1 itself. */
function ticks(low: number, high: number): number[] {
  const reach = Math.max(high, 1 / low);
  const steps =
    reach > 12
      ? [2, 5, 10, 20, 50, 100, 1000]
      : reach > 3
        ? [1.5, 2, 3, 5, 10]
        : reach > 1.5
          ? [1.25, 1.5, 2, 3]
          : reach > 1.15
            ? [1.1, 1.2, 1.4]
            : [1.02, 1.05, 1.1];
  return [...steps.map((step) => 1 / step), 1, ...steps].filter(
    (value) => value >= low ** 1.06 && value <= high ** 1.06,
  );
}
