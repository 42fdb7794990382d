// A crosshair that stands at the nearest point and tells every series there: by pointer, touch, and arrow keys.
import { useState } from "preact/hooks";

/** One value at a place of the crosshair. */
export interface Reading {
  name: string;
  text: string; // its value with its interval
  y: number; // pixels
  look: string; // class of its colour
}

/** A place where the crosshair can stand. */
export interface Stop {
  x: number; // pixels
  y?: number; // pixels, where a place is a point rather than a line
  title: string; // the value of the axis
  readings: Reading[];
}

interface Props {
  title: string;
  width: number;
  height: number;
  stops: Stop[];
}

export function Crosshair({ title, width, height, stops }: Props) {
  const [at, setAt] = useState<number | null>(null);
  const [row, setRow] = useState<string | null>(null);
  const stop = at === null ? undefined : stops[Math.min(at, stops.length - 1)];
  const point = (event: PointerEvent & { currentTarget: HTMLElement }): void => {
    const area = event.currentTarget.getBoundingClientRect();
    const pointer = { x: event.clientX - area.left, y: event.clientY - area.top };
    const next = nearest(stops, pointer);
    setAt(next);
    setRow(closest(stops[next], pointer.y));
  };
  const step = (event: KeyboardEvent): void => {
    const now = at ?? -1;
    const next = { ArrowRight: now + 1, ArrowLeft: Math.max(0, now - 1), Home: 0, End: stops.length - 1 }[event.key];
    if (event.key === "Escape") setAt(null);
    if (next === undefined) return;
    event.preventDefault();
    setAt(Math.min(next, stops.length - 1));
    setRow(null);
  };
  return (
    <div
      class="sensor"
      role="slider"
      tabIndex={0}
      aria-label={`${title}: point`}
      aria-valuemin={1}
      aria-valuemax={stops.length}
      aria-valuenow={(at ?? 0) + 1}
      aria-valuetext={stop ? spoken(stop) : "none chosen: use the arrow keys"}
      onPointerMove={point}
      onPointerDown={point}
      onPointerLeave={(event) => event.pointerType === "mouse" && setAt(null)}
      onKeyDown={step}
      onBlur={() => setAt(null)}
    >
      {stop && (
        <>
          <span class="cross-line" style={{ left: `${stop.x}px`, height: `${height - 44}px` }} />
          {stop.readings.map((reading) => (
            <span
              key={reading.name}
              class={`cross-dot ${reading.look}`}
              style={{ left: `${stop.x}px`, top: `${reading.y}px` }}
            />
          ))}
          <Readings stop={stop} width={width} chosen={row} />
        </>
      )}
    </div>
  );
}

const PANEL = 280; // pixels, the widest that the readings get

function Readings({ stop, width, chosen }: { stop: Stop; width: number; chosen: string | null }) {
  const right = stop.x + 14 + PANEL <= width || stop.x < width / 2;
  const place = right
    ? { left: `${Math.min(stop.x + 14, Math.max(0, width - PANEL))}px` }
    : { right: `${Math.min(width - stop.x + 14, Math.max(0, width - PANEL))}px` };
  const top = stop.y === undefined ? 8 : Math.max(0, stop.y - 30);
  return (
    <div class="readings" style={{ ...place, top: `${top}px`, maxWidth: `${Math.min(PANEL, width)}px` }}>
      <strong>
        <bdi>{stop.title}</bdi>
      </strong>
      <ul>
        {stop.readings.map((reading) => (
          <li key={reading.name} class={`${reading.look}${reading.name === chosen ? " chosen" : ""}`}>
            <i aria-hidden="true" />
            <bdi>{reading.name}</bdi>
            <span>{reading.text}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

function spoken(stop: Stop): string {
  return `${stop.title}: ${stop.readings.map((reading) => `${reading.name} ${reading.text}`).join("; ")}`;
}

/** Index of the nearest place; by distance where places are points, else by the x axis alone. */
export function nearest(stops: readonly Stop[], pointer: { x: number; y: number }): number {
  let found = 0;
  let least = Number.POSITIVE_INFINITY;
  stops.forEach((stop, index) => {
    const distance =
      stop.y === undefined ? Math.abs(stop.x - pointer.x) : Math.hypot(stop.x - pointer.x, stop.y - pointer.y);
    if (distance < least) [found, least] = [index, distance];
  });
  return found;
}

function closest(stop: Stop | undefined, y: number): string | null {
  const sorted = [...(stop?.readings ?? [])].sort((a, b) => Math.abs(a.y - y) - Math.abs(b.y - y));
  return sorted[0]?.name ?? null;
}
