// The two axes of a chart with their grid.
import { textWidth } from "./labels";

export interface Tick {
  at: number; // pixels
  text: string;
}

export interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

interface Props {
  box: Box;
  xTicks: Tick[];
  yTicks: Tick[];
  xLabel: string;
  yLabel: string;
}

export function Axes({ box, xTicks, yTicks, xLabel, yLabel }: Props) {
  return (
    <g class="axes" aria-hidden="true">
      {yTicks.map((tick) => (
        <g key={`y${tick.at}`}>
          <line class="grid" x1={box.left} x2={box.right} y1={tick.at} y2={tick.at} />
          <text class="tick" x={box.left - 8} y={tick.at} dy="0.32em" text-anchor="end">
            {tick.text}
          </text>
        </g>
      ))}
      {xTicks.map((tick) => (
        <g key={`x${tick.at}`}>
          <line class="mark-x" x1={tick.at} x2={tick.at} y1={box.bottom} y2={box.bottom + 4} />
          <text
            class="tick"
            x={tick.at}
            y={box.bottom + 18}
            text-anchor={tick.at + textWidth(tick.text) / 2 > box.right + 14 ? "end" : "middle"}
          >
            {tick.text}
          </text>
        </g>
      ))}
      <line class="base" x1={box.left} x2={box.right} y1={box.bottom} y2={box.bottom} />
      <text class="axis-name" x={box.right} y={box.bottom + 36} text-anchor="end">
        {xLabel}
      </text>
      <text class="axis-name" x={Math.min(box.left, 8)} y={box.top - 12} text-anchor="start">
        {yLabel}
      </text>
    </g>
  );
}

/** Ticks without those whose text would touch their left neighbour's. */
export function thin(ticks: Tick[], gap = 12): Tick[] {
  const kept: Tick[] = [];
  for (const tick of [...ticks].sort((a, b) => a.at - b.at)) {
    const before = kept.at(-1);
    const needed = before ? (textWidth(before.text) + textWidth(tick.text)) / 2 + gap : 0;
    if (!before || tick.at - before.at >= needed) kept.push(tick);
  }
  return kept;
}
