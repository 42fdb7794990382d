import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";

/** A button that opens a panel below it; Escape and a click elsewhere close it. */
export function Menu({
  label,
  badge,
  children,
  align = "left",
}: {
  label: string;
  badge?: number;
  children: ComponentChildren;
  align?: "left" | "right";
}) {
  const [open, setOpen] = useState(false);
  const frame = useRef<HTMLDivElement>(null);
  const id = useId();
  useEffect(() => {
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
      <div id={id} class={`panel ${align}`} hidden={!open}>
        {open && children}
      </div>
    </div>
  );
}
