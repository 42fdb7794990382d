// Line colours, dash patterns and point markers. The colours are the Okabe-Ito palette, which remains distinguishable
// with colour vision deficiencies.

export const SERIES_COLORS = 8;
const DASHES = ["", "7 3", "2 3", "10 3 2 3"];
const MARKS = ["circle", "square", "triangle", "diamond"] as const;
export type MarkShape = (typeof MARKS)[number];

export interface SeriesStyle {
  class: string; // series-0 to series-7; the theme defines the colour
  dash: string;
  mark: MarkShape;
}

/** Return the style of the nth line. */
export function seriesStyle(index: number): SeriesStyle {
  const cycle = Math.floor(index / SERIES_COLORS);
  return {
    class: `series-${index % SERIES_COLORS}`,
    dash: DASHES[(index + cycle) % DASHES.length] ?? "",
    mark: MARKS[(index + cycle) % MARKS.length] ?? "circle",
  };
}

/** Return the SVG path of a marker centred on the origin. */
export function markPath(shape: MarkShape, radius = 3.5): string {
  const r = radius;
  switch (shape) {
    case "circle":
      return `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0`;
    case "square":
      return `M${-r},${-r}h${2 * r}v${2 * r}h${-2 * r}z`;
    case "triangle":
      return `M0,${-r * 1.2}L${r * 1.15},${r}H${-r * 1.15}z`;
    case "diamond":
      return `M0,${-r * 1.3}L${r * 1.3},0L0,${r * 1.3}L${-r * 1.3},0z`;
  }
}
