// The axes of a chart, with grid lines.
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

/** A chart's axes. X ticks are omitted if their labels would overlap. */
export function Axes({ box, xTicks, yTicks, xLabel, yLabel }: Props) {
  return (
    <g class="axes" aria-hidden="true">
      {yTicks.map((tick) => (
        <g key={`y${tick.at}`}>
          <line class="grid" x1={box.left} x2={box.right} y1={tick.at} y2={tick.at} />
          <text class="tick" x={box.left - 8} y={tick.at} dy="0.32em" text-anchor="end">
            {trimZeros(tick.text)}
          </text>
        </g>
      ))}
      {removeOverlappingTicks(xTicks.map((tick) => ({ ...tick, text: trimZeros(tick.text) }))).map((tick) => (
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

/** Remove trailing zeros after the decimal point, which ticks do not need: ``10.0 ms`` becomes ``10 ms``. */
export function trimZeros(text: string): string {
  return text.replace(/(\d)\.(\d*?)0+(?!\d)/, (_, whole: string, rest: string) => (rest ? `${whole}.${rest}` : whole));
}

/** Remove each tick with a label closer than `gap` pixels to the label on the left. */
export function removeOverlappingTicks(ticks: Tick[], gap = 12): Tick[] {
  const visible: Tick[] = [];
  for (const tick of [...ticks].sort((a, b) => a.at - b.at)) {
    const previous = visible.at(-1);
    const needed = previous ? (textWidth(previous.text) + textWidth(tick.text)) / 2 + gap : 0;
    if (!previous || tick.at - previous.at >= needed) visible.push(tick);
  }
  return visible;
}
