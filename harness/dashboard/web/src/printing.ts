// Detects printing, so that content which otherwise appears only on scrolling is printed completely.
import { options } from "preact";
import { useEffect, useState } from "preact/hooks";

/** Return whether the page is being printed, or previewed for print. */
export function usePrinting(): boolean {
  const [printing, setPrinting] = useState(() => matchMedia("print").matches);
  useEffect(() => {
    const media = matchMedia("print");
    const before = (): void => renderSynchronously(() => setPrinting(true));
    const follow = (): void => renderSynchronously(() => setPrinting(media.matches));
    addEventListener("beforeprint", before);
    addEventListener("afterprint", follow);
    media.addEventListener("change", follow);
    return () => {
      removeEventListener("beforeprint", before);
      removeEventListener("afterprint", follow);
      media.removeEventListener("change", follow);
    };
  }, []);
  return printing;
}

/** Render a change synchronously, because browsers lay out the pages right after the last listener. */
function renderSynchronously(change: () => void): void {
  const previous = options.debounceRendering;
  options.debounceRendering = (draw) => draw();
  change();
  if (previous) options.debounceRendering = previous;
  else delete options.debounceRendering;
}
