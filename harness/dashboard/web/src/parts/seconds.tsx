// The samples of one cell second by second, with the warm-up of a chosen replicate.
import { LineChart } from "../charts/lines";
import { look } from "../charts/palette";
import type { Sample } from "../documents";
import { count, isNumber, rate, seconds, significant, tick } from "../format";
import { usePage } from "../hooks";

const SHORTEST_WINDOW = 0.25; // seconds

export function Seconds({ samples, all }: { samples: Sample[]; all: Sample[] }) {
  const { route, go } = usePage();
  const chosen = route.replicate === null ? samples : samples.filter((sample) => sample.replicate === route.replicate);
  const drawn = chosen.slice(0, 16);
  // The warm-up is carried by the first sample after it, which may be one of another level.
  const warmUp =
    drawn.length === 1
      ? (drawn[0]?.warm_up ?? all.find((sample) => sample.replicate === drawn[0]?.replicate && sample.warm_up)?.warm_up)
      : null;
  const before = warmUp?.duration ?? 0;
  const series = drawn.map((sample, index) => ({
    name: `replicate ${sample.replicate + 1}${sample.attempt ? `, attempt ${sample.attempt + 1}` : ""}`,
    look: look(index),
    points: [
      ...(warmUp?.windows ?? []).map((second) => ({
        x: second.start - before + second.duration / 2,
        y: perSecond(second.responses, second.duration),
      })),
      ...sample.windows.map((second) => ({
        x: second.start + second.duration / 2,
        y: perSecond(second.responses, second.duration),
      })),
    ],
  }));
  if (series.every((one) => one.points.length === 0)) return null;
  return (
    <section aria-label="Second by second">
      <div class="toolbar">
        <label>
          <span>Time series for</span>
          <select
            value={route.replicate ?? ""}
            onChange={(event) =>
              go({ replicate: event.currentTarget.value === "" ? null : Number(event.currentTarget.value) })
            }
          >
            <option value="">all replicates</option>
            {[...new Set(samples.map((sample) => sample.replicate))].map((replicate) => (
              <option key={replicate} value={replicate}>
                replicate {replicate + 1}, with its warm-up
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
            ? `Warm-up: ${seconds(warmUp.duration)}, ${count(warmUp.requests)} requests${isNumber(warmUp.seconds_to_steady) ? `, steady after ${seconds(warmUp.seconds_to_steady)}` : ""}${warmUp.steady === false ? ", not warmed up at its end" : ""}${isNumber(warmUp.worst_latency) ? `, slowest response ${seconds(warmUp.worst_latency)}` : ""}.`
            : "Responses of each second, from the sockets' byte counters. Choose one replicate to see its warm-up."
        }
        series={series}
        x={{
          label: "seconds since the load began",
          kind: "linear",
          format: (value) => `${significant(value)} s`,
          tick,
        }}
        y={{ label: "requests/s", kind: "linear", format: rate, tick }}
        spans={warmUp ? [{ from: -before, to: 0, name: "warm-up" }] : []}
        marks={drawn.length === 1 || series.some((one) => one.points.length === 1)}
        height={300}
        columns={["replicate", "seconds", "requests_per_second"]}
      />
    </section>
  );
}

/** Responses a second of a window; none for the sliver at a sample's end, which holds too few to say anything. */
function perSecond(responses: number | null, duration: number): number | null {
  return isNumber(responses) && duration > SHORTEST_WINDOW ? responses / duration : null;
}
