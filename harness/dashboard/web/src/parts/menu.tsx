import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { placeInside } from "./placement";

/** A button that opens a panel below it. Escape, or a click elsewhere, closes the panel. */
export function Menu({ label, badge, children }: { label: string; badge?: number; children: ComponentChildren }) {
  const [open, setOpen] = useState(false);
  const frame = useRef<HTMLDivElement>(null);
  const panel = useRef<HTMLDivElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    if (!open) return;
    const place = (): void => placeInside(panel.current);
    place();
    addEventListener("resize", place);
    return () => removeEventListener("resize", place);
  }, [open]);
  useLayoutEffect(() => {
    if (!open) return;
    const closeOutside = (event: Event): void => {
      if (!(event.target instanceof Node && frame.current?.contains(event.target))) setOpen(false);
    };
    const onEscape = (event: KeyboardEvent): void => {
      if (event.key !== "Escape") return;
      setOpen(false);
      frame.current?.querySelector("button")?.focus();
    };
    addEventListener("pointerdown", closeOutside);
    addEventListener("keydown", onEscape);
    return () => {
      removeEventListener("pointerdown", closeOutside);
      removeEventListener("keydown", onEscape);
    };
  }, [open]);
  return (
    <div class="menu" ref={frame}>
      <button type="button" aria-expanded={open} aria-controls={id} onClick={() => setOpen(!open)}>
        {label}
        {badge ? <span class="badge">{badge}</span> : null}
      </button>
      <div id={id} class="panel" ref={panel} hidden={!open}>
        {open && children}
      </div>
    </div>
  );
}
