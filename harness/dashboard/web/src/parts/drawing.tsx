// A table's bars as a drawing of its own, for export.

export interface DrawnRow {
  rank: string;
  name: string;
  text: string; // the figure with its interval, or why there is none
  length: number | null; // of the bar, 0 to 1
  low: number | null;
  high: number | null;
}

const LEFT = 320;
const REACH = 430;
const LINE = 26;

export function Drawing({ heading, rows }: { heading: string; rows: DrawnRow[] }) {
  const height = 64 + rows.length * LINE;
  const at = (share: number): number => LEFT + Math.min(1.1, Math.max(0, share)) * REACH;
  return (
    <svg width="1020" height={height} viewBox={`0 0 1020 ${height}`}>
      <text class="drawing-title" x="20" y="34">
        {heading}
      </text>
      {rows.map((row, index) => {
        const y = 52 + index * LINE;
        return (
          <g key={row.name}>
            <text class="tick" x="66" y={y + 15} text-anchor="end">
              {row.rank}
            </text>
            <text class="effect-name" x="80" y={y + 15}>
              {row.name.slice(0, 34)}
            </text>
            {row.length !== null && (
              <rect class="drawing-bar" x={LEFT} y={y + 4} width={Math.max(0, at(row.length) - LEFT)} height="14" />
            )}
            {row.low !== null && row.high !== null && (
              <path
                class="drawing-whisker"
                fill="none"
                d={`M${at(row.low)},${y + 6}v10M${at(row.low)},${y + 11}H${at(row.high)}M${at(row.high)},${y + 6}v10`}
              />
            )}
            <text class="tick" x={row.length === null ? LEFT : LEFT + REACH * 1.12} y={y + 15}>
              {row.text}
            </text>
          </g>
        );
      })}
    </svg>
  );
}
