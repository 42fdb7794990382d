// Follows a run while it goes on: asks every second where it stands, and says when to fetch the ranking anew.
import { useEffect, useState } from "preact/hooks";
import type { LiveDocument } from "../documents";
import { usePage } from "../hooks";

const SECONDS = 1; // between two questions
const REFRESH_SECONDS = 6; // at most one new ranking in that time

export interface LiveState {
  connected: boolean;
  told: LiveDocument | null; // null until the server has said something, and of a run that has ended before
  version: number; // counts the rankings to fetch
}

const NOTHING: LiveState = { connected: false, told: null, version: 0 };

export function useLive(run: string): LiveState {
  const { source } = usePage();
  const [state, setState] = useState<LiveState>(NOTHING);
  useEffect(() => {
    setState(NOTHING);
    if (source.offline || run.includes(":")) return;
    source.forget(run); // it may have been resumed since
    let current = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let seen: string | null = null;
    let fetched = 0;
    const look = async (): Promise<void> => {
      const told = await source.live(run).catch(() => null);
      if (!current) return;
      const ended = told !== null && told.status !== "running";
      const news = told !== null && told.version !== (seen ??= told.version);
      const fetches = ended || (news && Date.now() - fetched > REFRESH_SECONDS * 1000);
      if (told && fetches) {
        seen = told.version;
        fetched = Date.now();
        source.forget(run);
      }
      setState((now) => ({
        connected: told !== null,
        told: told ?? now.told,
        version: now.version + (fetches ? 1 : 0),
      }));
      if (!ended) timer = setTimeout(() => void look(), SECONDS * 1000);
    };
    source.run(run).then(
      (doc) => {
        if (current && doc.run.status === "running") void look();
      },
      () => undefined, // the page itself says what is wrong with the run
    );
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [source, run]);
  return state;
}
