// Places panels, menus and tooltips inside the viewport.

const EDGE = 8; // minimum distance from the viewport's edges, in pixels
const MIN_HEIGHT = 240; // pixels; an element with less room below its top edge moves up

/** Limit a visible element to the viewport's height, and move it into the viewport. */
export function placeInside(element: HTMLElement | null): void {
  if (!element) return;
  element.style.translate = "none";
  const room = Math.max(MIN_HEIGHT, innerHeight - EDGE - element.getBoundingClientRect().top);
  element.style.maxHeight = `${Math.min(room, innerHeight - 2 * EDGE)}px`;
  const box = element.getBoundingClientRect();
  const x = shift(box.left, box.right, document.documentElement.clientWidth);
  const y = shift(box.top, box.bottom, innerHeight);
  element.style.translate = `${x}px ${y}px`;
}

/** Return how far a range must move to fit between 0 and `size`. If it is too long, the start stays visible. */
function shift(start: number, end: number, size: number): number {
  return Math.max(Math.min(0, size - EDGE - end), EDGE - start);
}
