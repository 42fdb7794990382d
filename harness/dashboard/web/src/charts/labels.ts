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

export interface Box2 {
  x: number;
  y: number;
  width: number;
  height: number;
}

const touches = (a: Box2, b: Box2): boolean =>
  a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;

/** For each dot a place for its label beside, above or below it; null where none is free. */
export function beside(
  dots: readonly { x: number; y: number; width: number }[],
  height: number,
  frame: { left: number; right: number; top: number; bottom: number },
): ({ x: number; y: number } | null)[] {
  const taken: Box2[] = dots.map(({ x, y }) => ({ x: x - 5, y: y - 5, width: 10, height: 10 }));
  return dots.map((dot, index) => {
    const places = [
      { x: dot.x + 9, y: dot.y - height / 2 },
      { x: dot.x - 9 - dot.width, y: dot.y - height / 2 },
      { x: dot.x - dot.width / 2, y: dot.y - height - 7 },
      { x: dot.x - dot.width / 2, y: dot.y + 7 },
      { x: dot.x + 9, y: dot.y - height - 3 },
      { x: dot.x + 9, y: dot.y + 3 },
    ];
    for (const place of places) {
      const box = { ...place, width: dot.width, height };
      const inside =
        box.x >= frame.left && box.x + box.width <= frame.right && box.y >= frame.top && box.y + height <= frame.bottom;
      if (!inside || taken.some((other, at) => at !== index && touches(box, other))) continue;
      taken.push(box);
      return { x: place.x, y: place.y + height / 2 };
    }
    return null;
  });
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
