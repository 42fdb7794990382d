// A button that copies the address of the current view.
import { useState } from "preact/hooks";

const CONFIRMATION = 2000; // milliseconds for which the button shows "Link copied"

export function CopyLink() {
  const [state, setState] = useState<"idle" | "copied" | "manual">("idle");
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(location.href);
      setState("copied");
      setTimeout(() => setState("idle"), CONFIRMATION);
    } catch {
      setState("manual"); // browsers deny access to the clipboard on pages without HTTPS
    }
  };
  return (
    <span class="copy-link">
      <button type="button" onClick={() => void copy()}>
        {state === "copied" ? "Link copied" : "Copy link"}
      </button>
      <span class="visually-hidden" role="status">
        {state === "copied" ? "The link to this view was copied." : ""}
      </span>
      {state === "manual" && (
        <input
          type="text"
          readOnly
          aria-label="Link to this view"
          value={location.href}
          onFocus={(event) => event.currentTarget.select()}
        />
      )}
    </span>
  );
}
