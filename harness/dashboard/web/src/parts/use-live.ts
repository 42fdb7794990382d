// Follows a run while it goes on, and says when to fetch the ranking anew.
import { useEffect, useState } from "preact/hooks";
import type { LiveEvent, Progress, Trial } from "../documents";
import { usePage } from "../hooks";

const KEPT_SAMPLES = 40;
const REFRESH_SECONDS = 6; // at most one new ranking in that time

export interface LiveState {
  connected: boolean;
  progress: Progress | null;
  trials: Trial[];
  status: string; // "" until the server has said
  silentFor: number | null;
  version: number; // counts the rankings asked for
}

const NOTHING: LiveState = { connected: false, progress: null, trials: [], status: "", silentFor: null, version: 0 };

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
        trials: [...event.trials].reverse().concat(now.trials).slice(0, KEPT_SAMPLES),
        status: event.status || now.status,
        silentFor: event.silent_for,
      }));
      const ended = event.status !== "" && event.status !== "running";
      if (event.ranking_changed || ended) again(ended);
    };
    source.run(run).then(
      (doc) => {
        if (current && doc.run.status === "running")
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
