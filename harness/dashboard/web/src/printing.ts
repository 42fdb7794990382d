// Paper shows what a screen draws only when it is scrolled to.
import { options } from "preact";
import { useEffect, useState } from "preact/hooks";

/** Whether the page is being printed, or shown as it would be. */
export function usePrinting(): boolean {
  const [printing, setPrinting] = useState(() => matchMedia("print").matches);
  useEffect(() => {
    const media = matchMedia("print");
    const before = (): void => atOnce(() => setPrinting(true));
    const follow = (): void => atOnce(() => setPrinting(media.matches));
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

/** Draws a change before it returns: browsers lay the pages out as soon as the event's last listener has ended. */
function atOnce(change: () => void): void {
  const usual = options.debounceRendering;
  options.debounceRendering = (draw) => draw();
  change();
  if (usual) options.debounceRendering = usual;
  else delete options.debounceRendering;
}
