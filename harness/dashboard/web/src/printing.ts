// Detects printing, so that rows which normally appear only on scrolling are printed too.
import { options } from "preact";
import { useEffect, useState } from "preact/hooks";

/** Return whether the page is being printed or shown in a print preview. */
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

/** Render a change synchronously, because browsers lay out the printed page as soon as the listeners return. */
function renderSynchronously(change: () => void): void {
  const previous = options.debounceRendering;
  options.debounceRendering = (draw) => draw();
  change();
  if (previous) options.debounceRendering = previous;
  else delete options.debounceRendering;
}
