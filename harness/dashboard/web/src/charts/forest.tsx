// A forest plot: ratios with intervals on a logarithmic axis around 1.
import type { ComponentChildren } from "preact";
import { scaleLog } from "d3-scale";
import type { Ratio } from "../documents";
import { isNumber, times, timesWithInterval } from "../format";
import { Axes, type Box } from "./axes";
import { Chart } from "./frame";
import { shorten, textWidth } from "./labels";

export interface Effect {
  name: string;
  detail: string;
  ratio: Ratio;
  tone?: "better" | "worse" | "tie"; // verdict from harness/stats; by default, the interval determines it
}

interface Props {
  title: string;
  note: ComponentChildren;
  effects: Effect[];
  left: string; // meaning of a ratio below 1
  right: string; // meaning of a ratio above 1
  floor: number | null;
}

const ROW_HEIGHT = 32;

export function ForestPlot({ title, note, effects, left, right, floor }: Props) {
  if (effects.length === 0) return <p class="empty">{title}: no data to draw.</p>;
  const height = effects.length * ROW_HEIGHT + 96;
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
        const narrow = width < 620;
        const names = narrow ? 104 : 200;
        const box = { left: names, right: width - (narrow ? 14 : 190), top: 38, bottom: height - 46 };
        const x = scaleLog()
          .domain([low ** 1.06, high ** 1.06])
          .range([box.left, box.right])
          .clamp(true);
        const xTicks = ticks(low, high).map((value) => ({ at: x(value), text: times(value) }));
        const at = (index: number): number => box.top + index * ROW_HEIGHT + ROW_HEIGHT / 2 + 4;
        return {
          stops: effects.map((effect, index) => ({
            x: x(effect.ratio.value),
            y: at(index),
            title: effect.name,
            readings: [
              { name: effect.detail, text: timesWithInterval(effect.ratio), y: at(index), colorClass: "series-quiet" },
            ],
          })),
          svg: (
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
              <line class="unity" x1={x(1)} x2={x(1)} y1={box.top - 2} y2={box.bottom} />
              <Sides box={box} unity={x(1)} left={left} right={right} width={width} />
              {effects.map((effect, index) => (
                <g key={`${effect.name} ${effect.detail}`} class={`effect ${effectClass(effect)}`}>
                  <text class="effect-name" x={box.left - 10} y={at(index)} dy="0.32em" text-anchor="end">
                    {shorten(effect.name, names - 14)}
                  </text>
                  <Whisker ratio={effect.ratio} x={x} y={at(index)} />
                  <rect class="point" x={x(effect.ratio.value) - 4} y={at(index) - 4} width="8" height="8" />
                  {!narrow && (
                    <text class="effect-value" x={box.right + 12} y={at(index)} dy="0.32em">
                      {timesWithInterval(effect.ratio)}
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

function Whisker({ ratio, x, y }: { ratio: Ratio; x: (value: number) => number; y: number }) {
  if (!isNumber(ratio.low) || !isNumber(ratio.high) || ratio.low <= 0 || ratio.low === ratio.high) return null;
  const [from, to] = [x(ratio.low), x(ratio.high)];
  return <path class="error" fill="none" d={`M${from},${y - 4}v8M${from},${y}H${to}M${to},${y - 4}v8`} />;
}

interface SidesProps extends Pick<Props, "left" | "right"> {
  box: Box;
  unity: number;
  width: number;
}

/**
 * Labels for ratios below and above 1, near the line at 1. If they do not fit, they are shortened and moved to the
 * edges.
 */
function Sides({ box, unity, left, right, width }: SidesProps) {
  const y = box.top - 16;
  const fits = unity - 8 - textWidth(`← ${left}`) > 0 && unity + 8 + textWidth(`${right} →`) < width;
  const fitted = (text: string): string => (fits ? text : (text.split(" ")[0] ?? ""));
  return (
    <>
      <text class="axis-name" x={fits ? unity - 8 : 0} y={y} text-anchor={fits ? "end" : "start"}>
        ← {fitted(left)}
      </text>
      <text class="axis-name" x={fits ? unity + 8 : width} y={y} text-anchor={fits ? "start" : "end"}>
        {fitted(right)} →
      </text>
    </>
  );
}

function effectClass({ ratio, tone }: Effect): string {
  if (tone) return tone === "tie" ? "" : "certain";
  return isNumber(ratio.low) && isNumber(ratio.high) && (ratio.low > 1 || ratio.high < 1) ? "certain" : "";
}

/** Return round tick values between `low` and `high`, including 1. The narrower the range, the finer the steps. */
function ticks(low: number, high: number): number[] {
  const widest = Math.max(high, 1 / low);
  const steps =
    widest > 12
      ? [2, 5, 10, 20, 50, 100, 1000]
      : widest > 3
        ? [1.5, 2, 3, 5, 10]
        : widest > 1.5
          ? [1.25, 1.5, 2, 3]
          : widest > 1.15
            ? [1.1, 1.2, 1.4]
            : [1.02, 1.05, 1.1];
  return [...steps.map((step) => 1 / step), 1, ...steps].filter(
    (value) => value >= low ** 1.06 && value <= high ** 1.06,
  );
}
