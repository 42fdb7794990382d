// The end of a long table: more rows come as it comes into sight, all of them on paper.
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { usePrinting } from "../printing";

const ROW_HEIGHT = 48; // pixels, a little less than a row has: the rows drawn at first fill the window
const CHUNK = 40; // rows added whenever the end comes near

/** How many rows fill the window. */
const fitting = (): number => Math.max(12, Math.ceil(innerHeight / ROW_HEIGHT));

/** How many of a table's rows to draw, and what stands at its end; another subject begins at its top again. */
export function useGrowing(subject: string, length: number): [number, VNode | null] {
  const [grown, setGrown] = useState({ of: "", limit: 0 });
  const printing = usePrinting();
  const limit = printing ? length : grown.of === subject ? grown.limit : fitting();
  if (limit >= length) return [length, null];
  const grow = (next: number): void => setGrown({ of: subject, limit: next });
  return [limit, <More left={length - limit} onMore={() => grow(limit + CHUNK)} onAll={() => grow(length)} />];
}

function More({ left, onMore, onAll }: { left: number; onMore: () => void; onAll: () => void }) {
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
        Show all: {left} more
      </button>
    </div>
  );
}
