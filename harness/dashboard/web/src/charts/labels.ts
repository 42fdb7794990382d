// Label placement without overlaps. Pure functions.

export interface Placed {
  at: number; // preferred position
  y: number; // position without overlap
  index: number; // index of the label
}

/** Move the labels of a column as little as possible, so that they keep their order, the gap and the range. */
export function spread(preferred: readonly number[], gap: number, range: [number, number]): Placed[] {
  const placed = preferred
    .map((at, index): Placed => ({ at, y: Math.min(range[1], Math.max(range[0], at)), index }))
    .sort((a, b) => a.at - b.at || a.index - b.index);
  for (let index = 1; index < placed.length; index++) {
    const [previous, label] = [placed[index - 1], placed[index]];
    if (previous && label) label.y = Math.max(label.y, previous.y + gap);
  }
  let limit = range[1];
  for (let index = placed.length - 1; index >= 0; index--) {
    const label = placed[index];
    if (!label) continue;
    label.y = Math.min(label.y, limit);
    limit = label.y - gap;
  }
  return placed;
}

/** Estimate the width of a text at font size 12, in pixels. */
export function textWidth(text: string): number {
  return text.length * 6.6;
}

/** Shorten a name to a number of pixels. */
export function shorten(name: string, pixels: number): string {
  const maxLength = Math.max(4, Math.floor(pixels / 6.6));
  return name.length > maxLength ? `${name.slice(0, maxLength - 1)}…` : name;
}
