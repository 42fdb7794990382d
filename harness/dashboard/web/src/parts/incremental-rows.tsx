// Renders long tables incrementally. Scrolling adds rows, and printing renders all of them.
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { usePrinting } from "../printing";

const ROW_HEIGHT = 48; // pixels; less than the real height of any row, so that the first rows always fill the window
const CHUNK = 40; // number of rows added when the user reaches the end

/** Return how many rows fill the window. */
const windowRows = (): number => Math.max(12, Math.ceil(innerHeight / ROW_HEIGHT));

/**
 * Return the number of rows to draw, and an element to place after the last row (null if all rows are drawn). When the
 * element comes into view, more rows are drawn. When `subject` changes, start again with as many rows as fill the
 * window.
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
