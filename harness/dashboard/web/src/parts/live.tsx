// The live view: progress of a run that goes on, its last samples, and when to fetch the ranking anew.
import { useEffect, useState } from "preact/hooks";
import type { LiveEvent, Progress, Sample } from "../documents";
import { micros, rate, seconds } from "../format";
import { usePage } from "../hooks";
import { name as levelName, testName } from "../level";
import { Word } from "./basics";

const KEPT_SAMPLES = 8;
const REFRESH_SECONDS = 6; // at most one new ranking in that time

export interface LiveState {
  connected: boolean;
  progress: Progress | null;
  samples: Sample[];
  status: string; // "" until the server has said
  silentFor: number | null;
  version: number; // counts the rankings asked for
}

const NOTHING: LiveState = { connected: false, progress: null, samples: [], status: "", silentFor: null, version: 0 };

/** Follows a run while it goes on; of a run that has ended nothing is kept open. */
export function useLive(run: string): LiveState {
  const { source } = usePage();
  const [state, setState] = useState<LiveState>(NOTHING);
  useEffect(() => {
    setState(NOTHING);
    if (source.offline || run.includes(":")) return;
    let stop: (() => void) | null = null;
    let refresh: ReturnType<typeof setTimeout> | undefined;
    let current = true;
    const again = (soon: boolean): void => {
      if (refresh && !soon) return;
      clearTimeout(refresh);
      refresh = setTimeout(
        () => {
          refresh = undefined;
          setState((now) => ({ ...now, version: now.version + 1 }));
        },
        soon ? 0 : REFRESH_SECONDS * 1000,
      );
    };
    const onEvent = (event: LiveEvent): void => {
      setState((now) => ({
        ...now,
        progress: event.progress ?? now.progress,
        samples: [...event.samples].reverse().concat(now.samples).slice(0, KEPT_SAMPLES),
        status: event.status || now.status,
        silentFor: event.silent_for,
      }));
      const ended = event.status !== "" && event.status !== "running";
      if (event.ranking_changed || ended) again(ended);
    };
    source.run(run).then(
      (document) => {
        if (current && document.run.status === "running")
          stop = source.watch(run, onEvent, (connected) => setState((now) => ({ ...now, connected })));
      },
      () => undefined, // the page itself says what is wrong with the run
    );
    return () => {
      current = false;
      stop?.();
      clearTimeout(refresh);
    };
  }, [source, run]);
  return state;
}

export function Live({ live, progress }: { live: LiveState; progress: Progress | null }) {
  const ended = live.status !== "" && live.status !== "running";
  const done = progress?.done ?? 0;
  const total = progress?.total ?? 0;
  const doing = [
    progress?.stage,
    progress?.implementation,
    progress?.test_type && testName(progress.test_type),
    progress?.level,
  ]
    .filter(Boolean)
    .join(" · ");
  return (
    <section class="live" aria-label="Run in progress">
      <div class="live-line">
        <span class={ended || live.silentFor !== null ? "pulse still" : "pulse"} aria-hidden="true" />
        <p role="status">
          {ended ? (
            `The run is ${live.status}.`
          ) : live.silentFor !== null ? (
            `Nothing has been written for ${seconds(live.silentFor)}: the run may have been killed.`
          ) : (
            <bdi>{doing || "waiting for the run to say what it does"}</bdi>
          )}
        </p>
        <span class="quiet">
          {progress?.blocks ? `block ${progress.block ?? 0} of ${progress.blocks}` : ""}
          {progress?.elapsed ? ` · ${seconds(progress.elapsed)} so far` : ""}
          {!ended && progress?.remaining ? ` · about ${seconds(progress.remaining)} left` : ""}
          {!ended && !live.connected && " · not connected"}
        </span>
      </div>
      {total > 0 && <progress max={total} value={done} aria-label={`${done} of ${total} replicates`} />}
      {live.samples.length > 0 && !ended && (
        <details open>
          <summary>Last samples</summary>
          <div class="table-frame" tabIndex={0} role="region" aria-label="Last samples">
            <table class="plain-table">
              <thead>
                <tr>
                  <th scope="col">Implementation</th>
                  <th scope="col">Test</th>
                  <th scope="col">Level</th>
                  <th scope="col" class="number">
                    Requests/s
                  </th>
                  <th scope="col" class="number">
                    CPU µs/req
                  </th>
                  <th scope="col">Notes</th>
                </tr>
              </thead>
              <tbody>
                {live.samples.map((sample) => (
                  <tr key={sample.id}>
                    <td>
                      <bdi>{sample.implementation}</bdi>
                    </td>
                    <td>{testName(sample.test_type)}</td>
                    <td>{levelName(sample.level)}</td>
                    <td class="number">{rate(sample.throughput)}</td>
                    <td class="number">{micros(sample.cpu_per_request)}</td>
                    <td>
                      {sample.gates
                        .filter((gate) => gate.word)
                        .map((gate) => (
                          <Word key={gate.name} word={gate.word} tone={gate.outcome === "fail" ? "fail" : "warn"} />
                        ))}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </details>
      )}
      {(progress?.undecided.length ?? 0) > 0 && (
        <details>
          <summary>{progress?.undecided.length} still undecided</summary>
          <ul>
            {progress?.undecided.map((item) => (
              <li key={`${item.implementation} ${item.test_type}`}>
                <bdi>{item.implementation}</bdi>, {testName(item.test_type)}: {item.reason}
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}
