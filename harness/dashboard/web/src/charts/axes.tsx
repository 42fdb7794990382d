// The two axes of a chart with their grid.

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

export function Axes({
  box,
  xTicks,
  yTicks,
  xLabel,
  yLabel,
}: {
  box: Box;
  xTicks: Tick[];
  yTicks: Tick[];
  xLabel: string;
  yLabel: string;
}) {
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
            y={box.bottom + 17}
            text-anchor={tick.at + tick.text.length * 3.4 > box.right + 14 ? "end" : "middle"}
          >
            {tick.text}
          </text>
        </g>
      ))}
      <line class="base" x1={box.left} x2={box.right} y1={box.bottom} y2={box.bottom} />
      <text class="axis-name" x={box.right} y={box.bottom + 34} text-anchor="end">
        {xLabel}
      </text>
      <text class="axis-name" x={box.left} y={box.top - 10} text-anchor="start">
        {yLabel}
      </text>
    </g>
  );
}

/** Ticks without those that would touch their left neighbour. */
export function thin(ticks: Tick[], gap: number): Tick[] {
  const kept: Tick[] = [];
  for (const tick of [...ticks].sort((a, b) => a.at - b.at)) {
    const before = kept.at(-1);
    if (!before || tick.at - before.at >= gap) kept.push(tick);
  }
  return kept;
}
