// An SVG bar chart of a table, drawn only for export.

export interface BarRow {
  rank: string;
  name: string;
  text: string; // value with interval, or why there is no value
  length: number | null; // share of the maximum bar length, 0 to 1
  low: number | null;
  high: number | null;
}

const BAR_START = 320;
const BAR_LENGTH = 430;
const ROW_HEIGHT = 26;

export function BarDrawing({ heading, rows }: { heading: string; rows: BarRow[] }) {
  const height = 64 + rows.length * ROW_HEIGHT;
  const at = (share: number): number => BAR_START + Math.min(1.1, Math.max(0, share)) * BAR_LENGTH;
  return (
    <svg width="1020" height={height} viewBox={`0 0 1020 ${height}`}>
      <text class="drawing-title" x="20" y="34">
        {heading}
      </text>
      {rows.map((row, index) => {
        const y = 52 + index * ROW_HEIGHT;
        return (
          <g key={row.name}>
            <text class="tick" x="66" y={y + 15} text-anchor="end">
              {row.rank}
            </text>
            <text class="effect-name" x="80" y={y + 15}>
              {row.name.slice(0, 34)}
            </text>
            {row.length !== null && (
              <rect
                class="drawing-bar"
                x={BAR_START}
                y={y + 4}
                width={Math.max(0, at(row.length) - BAR_START)}
                height="14"
              />
            )}
            {row.low !== null && row.high !== null && (
              <path
                class="drawing-whisker"
                fill="none"
                d={`M${at(row.low)},${y + 6}v10M${at(row.low)},${y + 11}H${at(row.high)}M${at(row.high)},${y + 6}v10`}
              />
            )}
            <text class="tick" x={row.length === null ? BAR_START : BAR_START + BAR_LENGTH * 1.12} y={y + 15}>
              {row.text}
            </text>
          </g>
        );
      })}
    </svg>
  );
}
