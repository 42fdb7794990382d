// What can be done with a row: a menu, placed over the page, since a table clips what hangs out of it.
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { usePage } from "../hooks";

interface Place {
  name: string; // whose: another row's may come to stand here
  top: number;
  right: number;
}

export function RowMenu({ name }: { name: string }) {
  const [opened, setPlace] = useState<Place | null>(null);
  const place = opened?.name === name ? opened : null;
  const button = useRef<HTMLButtonElement>(null);
  const open = (): void => {
    const box = button.current?.getBoundingClientRect();
    if (place || !box) setPlace(null);
    else
      setPlace({
        name,
        top: Math.min(box.bottom + 4, innerHeight - 240),
        right: Math.max(8, document.documentElement.clientWidth - box.right),
      });
  };
  const close = (): void => {
    setPlace(null);
    button.current?.focus();
  };
  return (
    <>
      <button
        type="button"
        class="act"
        ref={button}
        aria-label={`Actions for ${name}`}
        aria-expanded={place !== null}
        onClick={open}
      >
        <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
          <circle cx="3" cy="8" r="1.5" />
          <circle cx="8" cy="8" r="1.5" />
          <circle cx="13" cy="8" r="1.5" />
        </svg>
      </button>
      {place && <Actions name={name} place={place} button={button} onClose={close} />}
    </>
  );
}

interface ActionsProps {
  name: string;
  place: Place;
  button: RefObject<HTMLButtonElement | null>; // closes by its own click
  onClose: () => void;
}

function Actions({ name, place, button, onClose }: ActionsProps) {
  const { route, go } = usePage();
  const frame = useRef<HTMLDivElement>(null);
  useEffect(() => {
    frame.current?.querySelector<HTMLElement>("button")?.focus({ preventScroll: true });
    const away = (event: Event): void => {
      const at = event.target;
      if (!(at instanceof Node && [frame, button].some(({ current }) => current?.contains(at)))) onClose();
    };
    const onEscape = (event: KeyboardEvent): void => {
      if (event.key === "Escape") onClose();
    };
    addEventListener("pointerdown", away);
    addEventListener("scroll", onClose, { passive: true });
    addEventListener("keydown", onEscape);
    return () => {
      removeEventListener("pointerdown", away);
      removeEventListener("scroll", onClose);
      removeEventListener("keydown", onEscape);
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the menu is made anew each time that it opens
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
      style={{ top: `${place.top}px`, right: `${place.right}px` }}
    >
      <button type="button" onClick={() => toggle("pinned")}>
        {route.pinned.includes(name) ? "Unpin" : "Pin to the top"}
      </button>
      <button type="button" onClick={() => toggle("hidden")}>
        Hide
      </button>
    </div>
  );
}
