// A run's live progress: current activity, running trial and latest trials.
import type { LiveDocument, RunProgress, Trial } from "../documents";
import { LineChart } from "../charts/lines";
import { seriesStyle } from "../charts/palette";
import { duration, micros, percent, rate, tick } from "../format";
import { label, testName } from "../load";
import { commonFlags } from "../table";
import { CommonFlags, RowFlags } from "./basics";
import { number, PlainTable } from "./plain-table";
import { trialFlags } from "./trials";

export function Live({ document: live, connected }: { document: LiveDocument; connected: boolean }) {
  const { progress, trials } = live;
  const ended = live.status !== "running";
  return (
    <section class="live" aria-label="Run in progress">
      <ActivityLine live={live} connected={connected} ended={ended} />
      {!ended && <TimeBar progress={progress} />}
      {!ended && (progress?.process ?? 0) > 0 && (
        <div class="running-trial">{(progress?.windows.length ?? 0) > 1 && <RunningTrial progress={progress} />}</div>
      )}
      {trials.length > 0 && !ended && <LatestTrials trials={trials} />}
    </section>
  );
}

const STAGES: Partial<Record<string, string>> = { measure: "measuring", "warm-up": "warming up" };

function ActivityLine({ live, connected, ended }: { live: LiveDocument; connected: boolean; ended: boolean }) {
  const { progress, silent_for: silentFor } = live;
  const activity = [
    progress && (STAGES[progress.stage] ?? progress.stage),
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
          `The run has written nothing for ${duration(silentFor)}; it may have been killed.`
        ) : (
          <bdi>{activity || "waiting for the first progress report"}</bdi>
        )}
      </p>
      <span class="quiet">
        {[
          [progress?.process && `process ${progress.process}`, progress?.round && `round ${progress.round}`]
            .filter(Boolean)
            .join(", "),
          progress?.elapsed && (ended ? `took ${duration(progress.elapsed)}` : `${duration(progress.elapsed)} so far`),
          !ended && progress?.remaining && `about ${duration(progress.remaining)} left`,
          !ended && !connected && "not connected",
        ]
          .filter(Boolean)
          .join(" · ")}
      </span>
    </div>
  );
}

/** Return the elapsed share of the expected measuring time, which excludes preparation such as builds. */
export function elapsedShare(progress: RunProgress | null): number | null {
  if (!progress || progress.remaining === null) return null;
  const measuring = Math.max(0, progress.elapsed - progress.preparation);
  const total = measuring + progress.remaining;
  return total > 0 ? measuring / total : null;
}

function TimeBar({ progress }: { progress: RunProgress | null }) {
  // How long builds take is unknown, so the bar is indeterminate until the first process starts.
  if (progress?.status === "running" && progress.process === 0)
    return <progress aria-label={`${progress.stage}: time left unknown`} />;
  const share = elapsedShare(progress);
  if (share === null) return null;
  return <progress max={1} value={share} aria-label={`${percent(share)} of the expected time`} />;
}

/** A chart of the running trial's throughput, second by second. */
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
          isTimeSeries: true,
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
  const flags = trials.map(trialFlags);
  const shared = commonFlags(flags);
  return (
    <details open>
      <summary>Latest trials</summary>
      <CommonFlags flags={shared} scope="table" />
      <PlainTable
        label="Latest trials"
        heads={["Implementation", "Test", "Load", number("Requests/s"), number("CPU µs/req"), "Notes"]}
        rows={trials.map((trial, index) => ({
          key: trial.id,
          cells: [
            ...[trial.implementation, testName(trial.test_type), label(trial.load)],
            ...[rate(trial.throughput), micros(trial.cpu_per_request)],
            <RowFlags flags={(flags[index] ?? []).filter((flag) => !shared.includes(flag))} />,
          ],
        }))}
      />
    </details>
  );
}
