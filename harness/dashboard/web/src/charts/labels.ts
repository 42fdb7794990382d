// Where labels stand so that none touches another. Pure.

export interface Placed {
  at: number; // where the label is wanted
  y: number; // where it stands
  index: number; // which one it is
}

/** Labels of one column: moved as little as their order and the height of a line allow, within a range. */
export function spread(wanted: readonly number[], gap: number, range: [number, number]): Placed[] {
  const placed = wanted
    .map((at, index): Placed => ({ at, y: Math.min(range[1], Math.max(range[0], at)), index }))
    .sort((a, b) => a.at - b.at || a.index - b.index);
  for (let index = 1; index < placed.length; index++) {
    const [before, label] = [placed[index - 1], placed[index]];
    if (before && label) label.y = Math.max(label.y, before.y + gap);
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

/** About how wide a text is drawn, in pixels, at a size of 12. */
export function textWidth(text: string): number {
  return text.length * 6.6;
}

/** A name short enough for a number of pixels. */
export function shortened(name: string, pixels: number): string {
  const most = Math.max(4, Math.floor(pixels / 6.6));
  return name.length > most ? `${name.slice(0, most - 1)}…` : name;
}
