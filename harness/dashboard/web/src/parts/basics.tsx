// Small components used on many pages: loading and errors, status, flags, facts.
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import type { ReadProblem } from "../documents";
import type { Loaded } from "../hooks";
import { flagMeaning } from "../flags";

export function Waiting({ loaded, subject }: { loaded: Loaded<unknown>; subject: string }) {
  if (loaded.state === "failed")
    return (
      <p class="problem" role="alert">
        Cannot show {subject}: {loaded.message}
      </p>
    );
  return (
    <p class="waiting" role="status">
      Loading {subject} …
    </p>
  );
}

const STATUSES = ["running", "complete", "incomplete", "failed", "interrupted"];

export function Status({ status }: { status: string }) {
  return <span class={`status ${STATUSES.includes(status) ? status : ""}`}>{status}</span>;
}

/** A flag of a value; its explanation appears on hover and focus. */
export function Flag({ flag, tone = "warn" }: { flag: string; tone?: "warn" | "fail" | "quiet" }) {
  const id = useId();
  return (
    <span class="flag-frame">
      <button type="button" class={`flag ${tone}`} aria-describedby={id}>
        <bdi>{flag}</bdi>
      </button>
      <span role="tooltip" id={id} class="tip">
        {flagMeaning(flag)}
      </span>
    </span>
  );
}

/** The flags that all rows of a table share, shown above the table. */
export function CommonFlags({ flags }: { flags: readonly string[] }) {
  return flags.length === 0 ? null : (
    <p class="common-flags">
      All rows:{" "}
      {flags.map((flag) => (
        <Flag key={flag} flag={flag} />
      ))}
    </p>
  );
}

/** The parts of a run that cannot be shown; collapsed if there are many. */
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

/** Terms with their values in two columns. */
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
