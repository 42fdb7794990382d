// A collapsible log in plain text. It is fetched when the user opens it.
import type { TargetedEvent } from "preact";
import { useState } from "preact/hooks";
import type { LogDocument } from "../documents";
import { bytes } from "../format";
import { usePage } from "../hooks";

export function LogView({ run, path, label = path }: { run: string; path: string; label?: string }) {
  const { source } = usePage();
  const [log, setLog] = useState<LogDocument | string | null>(null);
  const open = (event: TargetedEvent<HTMLDetailsElement>): void => {
    if (!event.currentTarget.open || (log !== null && typeof log !== "string")) return;
    source
      .log(run, path)
      .then(setLog, (error: unknown) => setLog(error instanceof Error ? error.message : String(error)));
  };
  return (
    <details class="log" onToggle={open}>
      <summary>
        <bdi>{label}</bdi>
      </summary>
      {log === null ? (
        <p class="waiting">Loading …</p>
      ) : typeof log === "string" ? (
        <p class="problem">{log}</p>
      ) : (
        <>
          {log.skipped > 0 && <p class="quiet">The first {bytes(log.skipped)} are omitted.</p>}
          <pre tabIndex={0}>{log.text || "(empty)"}</pre>
        </>
      )}
    </details>
  );
}
