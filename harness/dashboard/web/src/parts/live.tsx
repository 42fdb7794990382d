// The live view: where a run stands, the trial that is running, and its last trials.
import type { LiveDocument, RunProgress, Trial } from "../documents";
import { LineChart } from "../charts/lines";
import { look } from "../charts/palette";
import { micros, percent, rate, seconds, tick } from "../format";
import { name as loadName, testName } from "../load";
import { Word } from "./basics";
import { number, PlainTable } from "./plain-table";

export function Live({ told, connected }: { told: LiveDocument; connected: boolean }) {
  const { progress, trials } = told;
  const ended = told.status !== "running";
  return (
    <section class="live" aria-label="Run in progress">
      <Line told={told} connected={connected} ended={ended} />
      {!ended && <Done progress={progress} />}
      {!ended && (progress?.windows.length ?? 0) > 1 && <Running progress={progress} />}
      {trials.length > 0 && !ended && <LastTrials trials={trials} />}
    </section>
  );
}

function Line({ told, connected, ended }: { told: LiveDocument; connected: boolean; ended: boolean }) {
  const { progress, silent_for: silentFor } = told;
  const doing = [
    progress?.stage,
    progress?.implementation,
    progress?.test_type && testName(progress.test_type),
    progress?.load,
  ]
    .filter(Boolean)
    .join(" · ");
  return (
    <div class="live-line">
      <span class={ended || silentFor !== null ? "pulse still" : "pulse"} aria-hidden="true" />
      <p role="status">
        {ended ? (
          `The run is ${told.status}.`
        ) : silentFor !== null ? (
          `Nothing has been written for ${seconds(silentFor)}: the run may have been killed.`
        ) : (
          <bdi>{doing || "waiting for the run to say what it does"}</bdi>
        )}
      </p>
      <span class="quiet">
        {progress?.process ? `process ${progress.process}` : ""}
        {progress?.round ? `, round ${progress.round}` : ""}
        {progress?.elapsed ? ` · ${ended ? "took" : ""} ${seconds(progress.elapsed)}${ended ? "" : " so far"}` : ""}
        {!ended && progress?.remaining ? ` · about ${seconds(progress.remaining)} left` : ""}
        {!ended && !connected && " · not connected"}
      </span>
    </div>
  );
}

/** How much of the expected time is behind us: it moves from the first second, unlike a count of processes. */
export function shareDone(progress: RunProgress | null): number | null {
  if (!progress) return null;
  const { elapsed, remaining } = progress;
  return remaining !== null && elapsed + remaining > 0 ? elapsed / (elapsed + remaining) : null;
}

function Done({ progress }: { progress: RunProgress | null }) {
  const share = shareDone(progress);
  if (share === null) return null;
  return <progress max={1} value={share} aria-label={`${percent(share)} of the expected time`} />;
}

/** The trial that is running, second by second. */
function Running({ progress }: { progress: RunProgress | null }) {
  const windows = progress?.windows ?? [];
  return (
    <LineChart
      title={`${progress?.implementation ?? ""}: the trial that is running`}
      heading="h3"
      series={[
        {
          name: "requests/s",
          look: look(0),
          points: windows.map((second) => ({
            x: second.start + second.duration,
            y: second.responses === null || second.duration <= 0 ? null : second.responses / second.duration,
          })),
        },
      ]}
      x={{ label: "seconds", kind: "linear", format: (value) => `second ${tick(value)}`, tick }}
      y={{ label: "requests/s", kind: "linear", format: rate, tick }}
      columns={["metric", "seconds", "requests_per_second"]}
      height={200}
    />
  );
}

function LastTrials({ trials }: { trials: Trial[] }) {
  return (
    <details open>
      <summary>Last trials</summary>
      <PlainTable
        label="Last trials"
        heads={["Implementation", "Test", "Load", number("Requests/s"), number("CPU µs/req"), "Notes"]}
        rows={trials.map((trial) => ({
          key: trial.id,
          cells: [
            ...[trial.implementation, testName(trial.test_type), loadName(trial.load)],
            ...[rate(trial.throughput), micros(trial.cpu_per_request)],
            trial.validity
              .filter((check) => check.flag)
              .map((check) => (
                <Word key={check.name} word={check.flag} tone={check.outcome === "fail" ? "fail" : "warn"} />
              )),
          ],
        }))}
      />
    </details>
  );
}
