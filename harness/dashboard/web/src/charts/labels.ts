// Pure functions that place labels without overlaps.

export interface Placed {
  at: number; // preferred position
  y: number; // position without overlap
  index: number; // index of the label
}

/** Place labels near their preferred positions, in the same order, within the range and at least `gap` apart. */
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

const CHARACTER = 7.3; // mean character width in pixels at font size 12, in the widest common font

/** Estimate the width of a text at font size 12, in pixels. */
export function textWidth(text: string): number {
  return text.length * CHARACTER;
}

/** Truncate a name to a width of at most `pixels`. */
export function shorten(name: string, pixels: number): string {
  const maxLength = Math.max(4, Math.floor(pixels / CHARACTER));
  return name.length > maxLength ? `${name.slice(0, maxLength - 1)}…` : name;
}

export interface LabelBox {
  left: number;
  width: number;
  middle: number; // vertical centre
}

const LINE_HEIGHT = 15; // pixels
const POINT_RADIUS = 5;

/**
 * Return for each label whether to draw it. Preferred labels are always drawn. Other labels are drawn only if they cover
 * no drawn label and no other label's point.
 */
export function placeLabels(
  boxes: readonly LabelBox[],
  points: readonly { x: number; y: number }[],
  preferred: readonly boolean[],
): boolean[] {
  const drawn: LabelBox[] = [];
  const order = boxes.map((_, index) => index).sort((a, b) => Number(preferred[b]) - Number(preferred[a]));
  const visible = new Array<boolean>(boxes.length).fill(false);
  for (const index of order) {
    const box = boxes[index];
    if (!box) continue;
    const free =
      drawn.every((other) => !overlap(box, other)) &&
      points.every((point, own) => own === index || !overlap(box, pointBox(point)));
    if (!free && !preferred[index]) continue;
    visible[index] = true;
    drawn.push(box);
  }
  return visible;
}

function pointBox({ x, y }: { x: number; y: number }): LabelBox {
  return { left: x - POINT_RADIUS, width: 2 * POINT_RADIUS, middle: y };
}

function overlap(a: LabelBox, b: LabelBox): boolean {
  return a.left < b.left + b.width && b.left < a.left + a.width && Math.abs(a.middle - b.middle) < LINE_HEIGHT;
}
