// A row's menu. Its position is relative to the window, because the table would clip it.
import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { usePage } from "../hooks";
import { placeInside } from "./placement";

interface MenuPosition {
  name: string; // implementation with the open menu; filtering may assign the row to a different implementation
  top: number; // pixels
  right: number;
}

/** A row's menu button. `baseline` is true if the implementation can become the baseline. */
export function RowMenu({ name, baseline }: { name: string; baseline: boolean }) {
  const [opened, setPosition] = useState<MenuPosition | null>(null);
  const position = opened?.name === name ? opened : null;
  const button = useRef<HTMLButtonElement>(null);
  const open = (): void => {
    const box = button.current?.getBoundingClientRect();
    if (position || !box) setPosition(null);
    else
      setPosition({
        name,
        top: box.bottom + 4,
        right: Math.max(8, document.documentElement.clientWidth - box.right),
      });
  };
  const close = (): void => {
    setPosition(null);
    button.current?.focus();
  };
  return (
    <>
      <button
        type="button"
        class="act"
        ref={button}
        aria-label={`Actions for ${name}`}
        aria-expanded={position !== null}
        onClick={open}
      >
        <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
          <circle cx="3" cy="8" r="1.5" />
          <circle cx="8" cy="8" r="1.5" />
          <circle cx="13" cy="8" r="1.5" />
        </svg>
      </button>
      {position && <Actions name={name} baseline={baseline} position={position} button={button} onClose={close} />}
    </>
  );
}

interface ActionsProps {
  name: string;
  baseline: boolean;
  position: MenuPosition;
  button: RefObject<HTMLButtonElement | null>; // the button that opened the menu; it also closes the menu
  onClose: () => void;
}

function Actions({ name, baseline, position, button, onClose }: ActionsProps) {
  const { route, go } = usePage();
  const frame = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => placeInside(frame.current), []);
  useLayoutEffect(() => {
    frame.current?.querySelector<HTMLElement>("button")?.focus({ preventScroll: true });
    const closeOutside = (event: Event): void => {
      const at = event.target;
      if (!(at instanceof Node && [frame, button].some(({ current }) => current?.contains(at)))) onClose();
    };
    const onEscape = (event: KeyboardEvent): void => {
      if (event.key === "Escape") onClose();
    };
    addEventListener("pointerdown", closeOutside);
    addEventListener("scroll", onClose, { passive: true });
    addEventListener("keydown", onEscape);
    return () => {
      removeEventListener("pointerdown", closeOutside);
      removeEventListener("scroll", onClose);
      removeEventListener("keydown", onEscape);
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the menu is created each time it opens
  }, []);
  const toggle = (key: "pinned" | "hidden"): void => {
    const now = route[key];
    const next = now.includes(name) ? now.filter((other) => other !== name) : [...now, name];
    go(key === "pinned" ? { pinned: next } : { hidden: next });
    onClose();
  };
  return (
    <div
      class="row-actions"
      ref={frame}
      role="group"
      aria-label={`Actions for ${name}`}
      style={{ top: `${position.top}px`, right: `${position.right}px` }}
    >
      {baseline && (
        <button
          type="button"
          onClick={() => {
            go({ baseline: route.baseline === name ? "" : name });
            onClose();
          }}
        >
          {route.baseline === name ? "Restore the run's baseline" : "Use as baseline"}
        </button>
      )}
      <button type="button" onClick={() => toggle("pinned")}>
        {route.pinned.includes(name) ? "Unpin" : "Pin to the top"}
      </button>
      <button type="button" onClick={() => toggle("hidden")}>
        Hide
      </button>
    </div>
  );
}
