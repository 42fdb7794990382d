// The end of a long table: more rows come as it comes into sight.
import { useEffect, useRef } from "preact/hooks";

const ROW_HEIGHT = 48; // pixels, a little less than a row has: the rows drawn at first fill the window

/** How many rows fill the window. */
export const fitting = (): number => Math.max(12, Math.ceil(innerHeight / ROW_HEIGHT));

export function More({ left, onMore, onAll }: { left: number; onMore: () => void; onAll: () => void }) {
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
