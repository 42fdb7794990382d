// Copies the address of the view: everything that is chosen is in it.
import { useEffect, useState } from "preact/hooks";
import { usePage } from "../hooks";
import { format } from "../route";

export function CopyLink() {
  const { route } = usePage();
  const [said, setSaid] = useState("");
  useEffect(() => {
    if (!said) return;
    const timer = setTimeout(() => setSaid(""), 2500);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = async (): Promise<void> => {
    const link = new URL(format(route), location.href).href; // the address bar's follows typing a moment later
    try {
      await navigator.clipboard.writeText(link);
      setSaid("Copied");
    } catch {
      setSaid(copyByHand(link) ? "Copied" : "Copy it from the address bar");
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
