// Live progress of a run: current activity, running trial and latest trials.
import type { LiveDocument, RunProgress, Trial } from "../documents";
import { LineChart } from "../charts/lines";
import { seriesStyle } from "../charts/palette";
import { micros, percent, rate, seconds, tick } from "../format";
import { name as loadName, testName } from "../load";
import { Flag } from "./basics";
import { number, PlainTable } from "./plain-table";

export function Live({ document: live, connected }: { document: LiveDocument; connected: boolean }) {
  const { progress, trials } = live;
  const ended = live.status !== "running";
  return (
    <section class="live" aria-label="Run in progress">
      <ActivityLine live={live} connected={connected} ended={ended} />
      {!ended && <TimeBar progress={progress} />}
      {!ended && (progress?.windows.length ?? 0) > 1 && <RunningTrial progress={progress} />}
      {trials.length > 0 && !ended && <LatestTrials trials={trials} />}
    </section>
  );
}

function ActivityLine({ live, connected, ended }: { live: LiveDocument; connected: boolean; ended: boolean }) {
  const { progress, silent_for: silentFor } = live;
  const activity = [
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
          `The run is ${live.status}.`
        ) : silentFor !== null ? (
          `The run has written nothing for ${seconds(silentFor)}; it may have been killed.`
        ) : (
          <bdi>{activity || "waiting for the first progress report"}</bdi>
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

/** Return the elapsed share of the expected time, which advances from the first second unlike a count of processes. */
export function elapsedShare(progress: RunProgress | null): number | null {
  if (!progress) return null;
  const { elapsed, remaining } = progress;
  return remaining !== null && elapsed + remaining > 0 ? elapsed / (elapsed + remaining) : null;
}

function TimeBar({ progress }: { progress: RunProgress | null }) {
  const share = elapsedShare(progress);
  if (share === null) return null;
  return <progress max={1} value={share} aria-label={`${percent(share)} of the expected time`} />;
}

/** The running trial, second by second. */
function RunningTrial({ progress }: { progress: RunProgress | null }) {
  const windows = progress?.windows ?? [];
  return (
    <LineChart
      title={`${progress?.implementation ?? ""}: running trial`}
      heading="h3"
      series={[
        {
          name: "requests/s",
          style: seriesStyle(0),
          points: windows.map((item) => ({
            x: item.start + item.duration,
            y: item.responses === null || item.duration <= 0 ? null : item.responses / item.duration,
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

function LatestTrials({ trials }: { trials: Trial[] }) {
  return (
    <details open>
      <summary>Latest trials</summary>
      <PlainTable
        label="Latest trials"
        heads={["Implementation", "Test", "Load", number("Requests/s"), number("CPU µs/req"), "Notes"]}
        rows={trials.map((trial) => ({
          key: trial.id,
          cells: [
            ...[trial.implementation, testName(trial.test_type), loadName(trial.load)],
            ...[rate(trial.throughput), micros(trial.cpu_per_request)],
            trial.validity
              .filter((check) => check.flag)
              .map((check) => (
                <Flag key={check.name} flag={check.flag} tone={check.outcome === "fail" ? "fail" : "warn"} />
              )),
          ],
        }))}
      />
    </details>
  );
}
