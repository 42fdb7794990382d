// Copies the address of the view: everything that is chosen is in it.
import { useEffect, useState } from "preact/hooks";

export function CopyLink() {
  const [said, setSaid] = useState("");
  useEffect(() => {
    if (!said) return;
    const timer = setTimeout(() => setSaid(""), 2500);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(location.href);
      setSaid("Copied");
    } catch {
      setSaid(copyByHand(location.href) ? "Copied" : "Copy it from the address bar");
    }
  };
  return (
    <button type="button" class="copy-link" onClick={() => void copy()}>
      <span aria-live="polite">{said || "Copy link"}</span>
    </button>
  );
}

/** Where the clipboard is kept from a page, as on plain HTTP. */
function copyByHand(text: string): boolean {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "unseen";
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}
