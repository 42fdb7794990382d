// Renders long tables incrementally. More rows appear as the user scrolls. When printing, all rows are rendered.
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { usePrinting } from "../printing";

const ROW_HEIGHT = 48; // pixels; slightly less than a row's real height, so the first rows always fill the window
const CHUNK = 40; // number of rows added when the end comes into view

/** Return the number of rows that fill the window. */
const windowRows = (): number => Math.max(12, Math.ceil(innerHeight / ROW_HEIGHT));

/**
 * Return the number of rows to draw, and an element to place after the last row, which triggers the next rows. When the
 * subject changes, start again with as many rows as fill the window.
 */
export function useIncrementalRows(subject: string, length: number): [number, VNode | null] {
  const [state, setState] = useState({ subject: "", limit: 0 });
  const printing = usePrinting();
  const limit = printing ? length : state.subject === subject ? state.limit : windowRows();
  if (limit >= length) return [length, null];
  const grow = (next: number): void => setState({ subject, limit: next });
  return [limit, <MoreRows remaining={length - limit} onMore={() => grow(limit + CHUNK)} onAll={() => grow(length)} />];
}

function MoreRows({ remaining, onMore, onAll }: { remaining: number; onMore: () => void; onAll: () => void }) {
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = end.current;
    if (!element) return;
    const watcher = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && onMore(), {
      rootMargin: "200px",
    });
    watcher.observe(element);
    return () => watcher.disconnect();
  });
  return (
    <div ref={end} class="more">
      <button type="button" onClick={onAll}>
        Show all ({remaining} more)
      </button>
    </div>
  );
}
