// Polls the progress of a run, and signals when to reload the ranking.
import { useEffect, useState } from "preact/hooks";
import type { LiveDocument } from "../documents";
import { usePage } from "../hooks";

const POLL_SECONDS = 1; // poll interval
const REFRESH_SECONDS = 6; // minimum time between reloads of the ranking

export interface LiveState {
  connected: boolean;
  document: LiveDocument | null; // null before the first response, and if the run had ended before polling began
  version: number; // incremented when the ranking should be reloaded
}

const INITIAL_STATE: LiveState = { connected: false, document: null, version: 0 };

/** Poll a run until it ends. When `attempt` changes, start again, because the run may have appeared since. */
export function useLive(run: string, attempt: number): LiveState {
  const { source } = usePage();
  const [state, setState] = useState<LiveState>(INITIAL_STATE);
  useEffect(() => {
    setState(INITIAL_STATE);
    if (source.offline || run.includes(":")) return;
    source.forget(run); // the run may have been resumed
    let current = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let seenVersion: string | null = null;
    let lastReload = 0;
    const poll = async (): Promise<void> => {
      const progress = await source.live(run).catch(() => null);
      if (!current) return;
      const ended = progress !== null && progress.status !== "running";
      const changed = progress !== null && progress.version !== (seenVersion ??= progress.version);
      const reload = ended || (changed && Date.now() - lastReload > REFRESH_SECONDS * 1000);
      if (progress && reload) {
        seenVersion = progress.version;
        lastReload = Date.now();
        source.forget(run);
      }
      setState((now) => ({
        connected: progress !== null,
        document: progress ?? now.document,
        version: now.version + (reload ? 1 : 0),
      }));
      if (!ended) timer = setTimeout(() => void poll(), POLL_SECONDS * 1000);
    };
    source.run(run).then(
      (doc) => {
        if (current && doc.run.status === "running") void poll();
      },
      () => undefined, // the run's page loads the same document and shows the error
    );
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [source, run, attempt]);
  return state;
}
