import { useEffect, useRef } from "preact/hooks";

export interface Tab {
  id: string;
  label: string;
  note?: string;
}

/** A row of tabs with arrow-key navigation. */
export function Tabs({
  label,
  tabs,
  chosen,
  onChoose,
  panel,
  quiet,
}: {
  label: string;
  tabs: Tab[];
  chosen: string;
  onChoose: (id: string) => void;
  panel: string;
  quiet?: boolean;
}) {
  const row = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // Scroll the row to the selected tab. scrollIntoView would also scroll the page.
    const [frame, tab] = [row.current, row.current?.querySelector<HTMLElement>("[aria-selected=true]")];
    if (frame && tab) frame.scrollLeft = tab.offsetLeft - frame.offsetLeft - (frame.clientWidth - tab.offsetWidth) / 2;
  }, [chosen]);
  const step = (event: KeyboardEvent): void => {
    const index = tabs.findIndex((tab) => tab.id === chosen);
    const next =
      event.key === "ArrowRight"
        ? (index + 1) % tabs.length
        : event.key === "ArrowLeft"
          ? (index - 1 + tabs.length) % tabs.length
          : event.key === "Home"
            ? 0
            : event.key === "End"
              ? tabs.length - 1
              : -1;
    const tab = tabs[next];
    if (!tab) return;
    event.preventDefault();
    onChoose(tab.id);
    row.current?.querySelectorAll<HTMLButtonElement>("[role=tab]")[next]?.focus();
  };
  return (
    <div class={quiet ? "tabs quiet-tabs" : "tabs"} role="tablist" aria-label={label} ref={row} onKeyDown={step}>
      {tabs.map((tab) => (
        <button
          type="button"
          role="tab"
          key={tab.id}
          aria-selected={tab.id === chosen}
          aria-controls={panel}
          tabIndex={tab.id === chosen ? 0 : -1}
          onClick={() => onChoose(tab.id)}
        >
          {tab.label}
        </button>
      ))}
    </div>
  );
}
