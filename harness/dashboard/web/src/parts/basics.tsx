// Small parts used all over: waiting and failure, status, words with their meaning, tabs, menus.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Problem } from "../documents";
import type { Loaded } from "../hooks";
import { meaning } from "../words";

export function Waiting({ loaded, what }: { loaded: Loaded<unknown>; what: string }) {
  if (loaded.state === "failed")
    return (
      <p class="problem" role="alert">
        Cannot show {what}: {loaded.message}
      </p>
    );
  return (
    <p class="waiting" role="status">
      Reading {what} …
    </p>
  );
}

const STATUS: Record<string, string> = {
  running: "running",
  complete: "complete",
  failed: "failed",
  interrupted: "interrupted",
};

export function Status({ status }: { status: string }) {
  return <span class={`status ${Object.hasOwn(STATUS, status) ? status : ""}`}>{status}</span>;
}

/** A word beside a figure; its meaning shows on hover and on focus. */
export function Word({ word, tone = "warn" }: { word: string; tone?: "warn" | "fail" | "quiet" }) {
  const id = useId();
  return (
    <span class="word-frame">
      <button type="button" class={`word ${tone}`} aria-describedby={id}>
        <bdi>{word}</bdi>
      </button>
      <span role="tooltip" id={id} class="tip">
        {meaning(word)}
      </span>
    </span>
  );
}

export interface Tab {
  id: string;
  label: string;
  note?: string;
}

/** A row of tabs, moved through with the arrow keys. */
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

/** A button that opens a panel below it; Escape and a click elsewhere close it. */
export function Menu({
  label,
  badge,
  children,
  align = "left",
}: {
  label: string;
  badge?: number;
  children: ComponentChildren;
  align?: "left" | "right";
}) {
  const [open, setOpen] = useState(false);
  const frame = useRef<HTMLDivElement>(null);
  const id = useId();
  useEffect(() => {
    if (!open) return;
    const away = (event: Event): void => {
      if (!frame.current?.contains(event.target as Node)) setOpen(false);
    };
    const escape = (event: KeyboardEvent): void => {
      if (event.key !== "Escape") return;
      setOpen(false);
      frame.current?.querySelector("button")?.focus();
    };
    addEventListener("pointerdown", away);
    addEventListener("keydown", escape);
    return () => {
      removeEventListener("pointerdown", away);
      removeEventListener("keydown", escape);
    };
  }, [open]);
  return (
    <div class="menu" ref={frame}>
      <button type="button" aria-expanded={open} aria-controls={id} onClick={() => setOpen(!open)}>
        {label}
        {badge ? <span class="badge">{badge}</span> : null}
      </button>
      <div id={id} class={`panel ${align}`} hidden={!open}>
        {open && children}
      </div>
    </div>
  );
}

/** What of a run cannot be shown, folded away when it is long. */
export function Problems({ problems }: { problems: Problem[] }) {
  if (problems.length === 0) return null;
  return (
    <details class="problem" open={problems.length <= 3}>
      <summary>
        {problems.length === 1
          ? "One thing of this run cannot be shown"
          : `${problems.length} things of this run cannot be shown`}
      </summary>
      <ul>
        {problems.map((problem) => (
          <li key={`${problem.file} ${problem.message}`}>
            <code>{problem.file}</code>: {problem.message}
          </li>
        ))}
      </ul>
    </details>
  );
}

/** Terms with their values, two columns. */
export function Facts({ facts }: { facts: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {facts
        .filter(([, value]) => value !== null && value !== undefined && value !== "")
        .map(([term, value]) => (
          <div key={term}>
            <dt>{term}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
