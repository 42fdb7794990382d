// Colours and dashes of lines: Okabe and Ito's palette, told apart with any colour vision; dashes and marks tell them apart without.

export const SERIES = 8;
const DASHES = ["", "7 3", "2 3", "10 3 2 3"];
const MARKS = ["circle", "square", "triangle", "diamond"] as const;
export type MarkShape = (typeof MARKS)[number];

export interface Look {
  class: string; // series-0 .. series-7: the colour is the theme's
  dash: string;
  mark: MarkShape;
}

/** The look of the nth line. */
export function look(index: number): Look {
  const round = Math.floor(index / SERIES);
  return {
    class: `series-${index % SERIES}`,
    dash: DASHES[(index + round) % DASHES.length] ?? "",
    mark: MARKS[(index + round) % MARKS.length] ?? "circle",
  };
}

/** The path of a mark around the origin. */
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
