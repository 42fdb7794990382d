// Small shared components: loading and error states, run status, flags, tooltips and lists of facts.
import type { ComponentChildren } from "preact";
import { useId, useRef } from "preact/hooks";
import type { ReadProblem } from "../documents";
import type { Loaded } from "../hooks";
import { flagMeaning, SEVERITIES, type Severity, severity } from "../flags";
import { placeInside } from "./placement";

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

/** A flag that marks a value as doubtful. The explanation appears on hover and focus. */
export function Flag({ flag, tone = severity(flag) }: { flag: string; tone?: Severity }) {
  return (
    <Tip label={flag} class={`flag ${tone}`} tip={flagMeaning(flag)}>
      <bdi>{flag}</bdi>
    </Tip>
  );
}

const SYMBOLS: Record<Severity, string> = { fail: "✕", warn: "!", info: "i" };

/** A single icon for all of a row's flags, with the symbol of the most severe flag. The tooltip explains each flag. */
export function RowFlags({ flags }: { flags: readonly string[] }) {
  const worst = SEVERITIES.find((tone) => flags.some((flag) => severity(flag) === tone));
  if (!worst) return null;
  const explanations = flags.map((flag) => (
    <span class="explained" key={flag}>
      <b>
        <bdi>{flag}</bdi>
      </b>
      {": "}
      {flagMeaning(flag)}
    </span>
  ));
  return (
    <Tip label={`Notes: ${flags.join(", ")}`} class={`row-flags ${worst}`} tip={explanations}>
      {SYMBOLS[worst]}
      {flags.length > 1 && <sub>{flags.length}</sub>}
    </Tip>
  );
}

interface TipProps {
  label: string;
  class: string;
  tip: ComponentChildren;
  children: ComponentChildren;
}

/** A button with a tooltip that appears on hover and focus. */
export function Tip({ label, class: classes, tip, children }: TipProps) {
  const id = useId();
  const frame = useRef<HTMLSpanElement>(null);
  const place = (): void => placeInside(frame.current);
  return (
    <span class="flag-frame">
      <button
        type="button"
        class={classes}
        aria-label={label}
        aria-describedby={id}
        onPointerEnter={place}
        onFocus={place}
      >
        {children}
      </button>
      <span role="tooltip" id={id} class="tip" ref={frame}>
        {tip}
      </span>
    </span>
  );
}

/** The flags that all rows of a run or table have in common, shown once instead of in each row. */
export function CommonFlags({ flags, scope }: { flags: readonly string[]; scope: "run" | "table" }) {
  return flags.length === 0 ? null : (
    <p class="common-flags">
      All rows of this {scope}:{" "}
      {flags.map((flag) => (
        <Flag key={flag} flag={flag} />
      ))}
    </p>
  );
}

/** Problems with reading a run's files. More than three are collapsed. */
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

/** A two-column list of terms and values. Terms without a value are omitted. */
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
