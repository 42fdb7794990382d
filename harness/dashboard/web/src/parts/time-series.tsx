// A second-by-second chart of a cell's trials. If a process is selected, the chart includes the warm-up.
import { LineChart } from "../charts/lines";
import { seriesStyle } from "../charts/palette";
import type { Trial } from "../documents";
import { count, isNumber, rate, seconds, significant, tick } from "../format";
import { usePage } from "../hooks";
import { trialName } from "../load";

const SHORTEST_WINDOW = 0.25; // seconds; rates in shorter windows are too inaccurate to show

export function TimeSeries({ trials: recorded, all }: { trials: Trial[]; all: Trial[] }) {
  const { route, go } = usePage();
  const trials = recorded.filter((trial) => trial.purpose !== "witness");
  const selected = route.process === null ? trials : trials.filter((trial) => trial.process === route.process);
  const drawn = selected.slice(0, 16);
  // The first trial after a warm-up records it. That trial may have a different load than the selected trials.
  const [first] = drawn;
  const warmUp = drawn.every((trial) => trial.process === first?.process)
    ? (first?.warm_up ?? all.find((trial) => trial.process === first?.process && trial.warm_up)?.warm_up)
    : null;
  const warmUpDuration = warmUp?.duration ?? 0;
  const series = drawn.map((trial, index) => ({
    name: trialName(trial),
    style: seriesStyle(index),
    isTimeSeries: true,
    points: [
      ...(index === 0 ? (warmUp?.windows ?? []) : []).map((item) => ({
        x: item.start - warmUpDuration + item.duration / 2,
        y: perSecond(item.responses, item.duration),
      })),
      ...trial.windows.map((item) => ({
        x: item.start + item.duration / 2,
        y: perSecond(item.responses, item.duration),
      })),
    ],
  }));
  if (series.every((item) => item.points.length === 0)) return null;
  return (
    <section aria-label="Second by second">
      <div class="toolbar">
        <label>
          <span>Time series for</span>
          <select
            value={route.process ?? ""}
            onChange={(event) =>
              go({ process: event.currentTarget.value === "" ? null : Number(event.currentTarget.value) })
            }
          >
            <option value="">all processes</option>
            {[...new Set(trials.map((trial) => trial.process))].map((process) => (
              <option key={process} value={process}>
                process {process + 1}, with its warm-up
              </option>
            ))}
          </select>
        </label>
      </div>
      <LineChart
        title="Second by second"
        heading="h3"
        note={
          warmUp
            ? `Warm-up: ${seconds(warmUp.duration)}, ${count(warmUp.requests)} requests${isNumber(warmUp.seconds_to_steady) ? `, steady after ${seconds(warmUp.seconds_to_steady)}` : ""}${warmUp.steady === false ? ", not steady at its end" : ""}${isNumber(warmUp.worst_latency) ? `, slowest response ${seconds(warmUp.worst_latency)}` : ""}.`
            : "Responses per second, from the byte counters of the sockets. Select a process to see its warm-up."
        }
        series={series}
        x={{
          label: "seconds since the load began",
          kind: "linear",
          format: (value) => `${significant(value)} s`,
          tick,
        }}
        y={{ label: "requests/s", kind: "linear", format: rate, tick }}
        spans={warmUp ? [{ from: -warmUpDuration, to: 0, name: "warm-up" }] : []}
        marks={drawn.length === 1}
        height={300}
        columns={["process", "seconds", "requests_per_second"]}
      />
    </section>
  );
}

/** Return a window's responses per second, or null if the window is too short, as the last window may be. */
function perSecond(responses: number | null, duration: number): number | null {
  return isNumber(responses) && duration > SHORTEST_WINDOW ? responses / duration : null;
}
