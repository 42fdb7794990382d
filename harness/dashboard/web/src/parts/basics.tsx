// Small parts used all over: waiting and failure, status, words with their meaning, facts.
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import type { ReadProblem } from "../documents";
import type { Loaded } from "../hooks";
import { meaning } from "../flags";

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
  incomplete: "incomplete",
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

/** The words of every row, above their table. */
export function Said({ words }: { words: readonly string[] }) {
  return words.length === 0 ? null : (
    <p class="said">
      All rows:{" "}
      {words.map((word) => (
        <Word key={word} word={word} />
      ))}
    </p>
  );
}

/** What of a run cannot be shown, folded away when it is long. */
export function Problems({ problems }: { problems: ReadProblem[] }) {
  if (problems.length === 0) return null;
  return (
    <details class="problem" open={problems.length <= 3}>
      <summary>
        {problems.length === 1
          ? "1 item in this run could not be displayed"
          : `${problems.length} items in this run could not be displayed`}
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
