// A crosshair that shows the values of all series at the nearest point. It follows the mouse, touches and arrow keys.
import { useState } from "preact/hooks";

/** A series' value at a crosshair position. */
export interface Reading {
  name: string;
  text: string; // value with interval
  y: number; // pixels
  colorClass: string; // CSS class
}

/** A position at which the crosshair can stop. */
export interface Stop {
  x: number; // pixels
  y?: number; // pixels; undefined if the position is a vertical line instead of a point
  title: string; // value on the x axis, or the name of the point
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
    const next = nearestStop(stops, pointer);
    setAt(next);
    setRow(closestSeries(stops[next], pointer.y));
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
      aria-valuetext={stop ? describe(stop) : "no point selected; use the arrow keys"}
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
              class={`cross-dot ${reading.colorClass}`}
              style={{ left: `${stop.x}px`, top: `${reading.y}px` }}
            />
          ))}
          <Readings stop={stop} width={width} chosen={row} />
        </>
      )}
    </div>
  );
}

const MAX_PANEL_WIDTH = 280; // maximum width of the panel with the values, in pixels

function Readings({ stop, width, chosen }: { stop: Stop; width: number; chosen: string | null }) {
  const right = stop.x + 14 + MAX_PANEL_WIDTH <= width || stop.x < width / 2;
  const place = right
    ? { left: `${Math.min(stop.x + 14, Math.max(0, width - MAX_PANEL_WIDTH))}px` }
    : { right: `${Math.min(width - stop.x + 14, Math.max(0, width - MAX_PANEL_WIDTH))}px` };
  const top = stop.y === undefined ? 8 : Math.max(0, stop.y - 30);
  return (
    <div class="readings" style={{ ...place, top: `${top}px`, maxWidth: `${Math.min(MAX_PANEL_WIDTH, width)}px` }}>
      <strong>
        <bdi>{stop.title}</bdi>
      </strong>
      <ul>
        {stop.readings.map((reading) => (
          <li key={reading.name} class={`${reading.colorClass}${reading.name === chosen ? " chosen" : ""}`}>
            <i aria-hidden="true" />
            <bdi>{reading.name}</bdi>
            <span>{reading.text}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

function describe(stop: Stop): string {
  return `${stop.title}: ${stop.readings.map((reading) => `${reading.name} ${reading.text}`).join("; ")}`;
}

/** Return the index of the stop nearest to the pointer. For stops that are vertical lines, only x counts. */
export function nearestStop(stops: readonly Stop[], pointer: { x: number; y: number }): number {
  let best = 0;
  let smallest = Number.POSITIVE_INFINITY;
  stops.forEach((stop, index) => {
    const distance =
      stop.y === undefined ? Math.abs(stop.x - pointer.x) : Math.hypot(stop.x - pointer.x, stop.y - pointer.y);
    if (distance < smallest) [best, smallest] = [index, distance];
  });
  return best;
}

function closestSeries(stop: Stop | undefined, y: number): string | null {
  const sorted = [...(stop?.readings ?? [])].sort((a, b) => Math.abs(a.y - y) - Math.abs(b.y - y));
  return sorted[0]?.name ?? null;
}
