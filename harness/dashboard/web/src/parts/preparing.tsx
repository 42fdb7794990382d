// Runs that are still being prepared, as shown in the list of runs and on the run's page.
import { useEffect, useState } from "preact/hooks";
import type { PreparingRun } from "../documents";
import { duration } from "../format";
import { type Loaded, useOptionalDocument, usePage } from "../hooks";
import { Status, Waiting } from "./basics";

const POLL_SECONDS = 2; // poll interval

/** A list of runs that are installing tools or building, or were killed while doing so. */
export function Preparing({ runs }: { runs: readonly PreparingRun[] }) {
  return (
    <ul class="runs" aria-label="Runs in preparation">
      {runs.map((run) => (
        <li class="run live-line" key={run.run_id}>
          <span class={run.silent_for === null ? "pulse" : "pulse still"} aria-hidden="true" />
          <p role="status">
            <bdi>{run.run_id}</bdi>{" "}
            {run.silent_for === null
              ? `is preparing: ${run.stage}, for ${duration(run.elapsed)}`
              : `was probably killed while it was preparing (${run.stage}): it has written nothing for ${duration(run.silent_for)}`}
          </p>
        </li>
      ))}
    </ul>
  );
}

/** A placeholder for a run that is being prepared or failed to load. Calls `onRetry` repeatedly during preparation. */
export function Unavailable({ id, loaded, onRetry }: { id: string; loaded: Loaded<unknown>; onRetry: () => void }) {
  const { source } = usePage();
  const [version, setVersion] = useState(0);
  const failed = loaded.state === "failed";
  const list = useOptionalDocument(`runs#${version}`, failed && !source.offline ? () => source.runs() : null);
  const runs = list.state === "ready" ? (list.value?.preparing ?? []).filter((run) => run.run_id === id) : [];
  const preparing = runs.length > 0;
  // The run may have started to measure after the request for the document failed. If so, repeat the request.
  const outdated = failed && !source.offline && list.state === "ready" && !preparing;
  useEffect(() => {
    if (outdated) onRetry();
  }, [outdated, onRetry]);
  useEffect(() => {
    if (!preparing) return;
    const poll = (): void => {
      setVersion((now) => now + 1);
      onRetry();
    };
    const timer = setInterval(poll, POLL_SECONDS * 1000);
    return () => clearInterval(timer);
  }, [preparing, onRetry]);
  if (!preparing) return <Waiting loaded={loaded} subject={`run ${id}`} />;
  return (
    <>
      <div class="heading">
        <h1>
          <bdi>{id}</bdi>
        </h1>
        <Status status="running" />
      </div>
      <Preparing runs={runs} />
    </>
  );
}
