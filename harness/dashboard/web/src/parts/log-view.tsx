// A log, fetched when it is opened, shown as plain text.
import type { TargetedEvent } from "preact";
import { useState } from "preact/hooks";
import type { LogDocument } from "../documents";
import { bytes } from "../format";
import { usePage } from "../hooks";

export function LogView({ run, path, label = path }: { run: string; path: string; label?: string }) {
  const { source } = usePage();
  const [held, setHeld] = useState<LogDocument | string | null>(null);
  const open = (event: TargetedEvent<HTMLDetailsElement>): void => {
    if (!event.currentTarget.open || (held !== null && typeof held !== "string")) return;
    source
      .log(run, path)
      .then(setHeld, (error: unknown) => setHeld(error instanceof Error ? error.message : String(error)));
  };
  return (
    <details class="log" onToggle={open}>
      <summary>
        <bdi>{label}</bdi>
      </summary>
      {held === null ? (
        <p class="waiting">Reading …</p>
      ) : typeof held === "string" ? (
        <p class="problem">{held}</p>
      ) : (
        <>
          {held.skipped > 0 && <p class="quiet">The first {bytes(held.skipped)} are left out.</p>}
          <pre tabIndex={0}>{held.text || "(empty)"}</pre>
        </>
      )}
    </details>
  );
}
