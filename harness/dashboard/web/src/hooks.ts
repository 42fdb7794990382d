// The page's state: the route in the URL, and documents on their way.
import { createContext } from "preact";
import { useCallback, useContext, useEffect, useRef, useState } from "preact/hooks";
import { emptyRoute, format, parse, type Route } from "./route";
import type { Source } from "./source";

export type Go = (change: Partial<Route>, how?: "push" | "replace") => void;

const WRITTEN_AFTER = 100; // milliseconds of rest after typing: browsers take their time to write an address

/**
 * The route, and a function that changes it. Typing replaces the entry in the history, once it rests; choosing adds one.
 */
export function useRoute(): [Route, Go] {
  const [route, setRoute] = useState(() => parse(location.hash));
  const latest = useRef(route);
  const writing = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    const follow = (): void => {
      clearTimeout(writing.current);
      latest.current = parse(location.hash);
      setRoute(latest.current);
    };
    addEventListener("hashchange", follow);
    addEventListener("popstate", follow);
    return () => {
      removeEventListener("hashchange", follow);
      removeEventListener("popstate", follow);
    };
  }, []);
  const go = useCallback<Go>((change, how = "push") => {
    const write = (): void => {
      const hash = format(latest.current);
      if (hash !== location.hash) history.replaceState(null, "", hash);
    };
    clearTimeout(writing.current);
    const next = { ...latest.current, ...change };
    if (how === "replace") writing.current = setTimeout(write, WRITTEN_AFTER);
    else {
      write(); // what was typed before: the way back leads there
      const hash = format(next);
      if (hash !== location.hash) history.pushState(null, "", hash);
    }
    latest.current = next;
    setRoute(next);
  }, []);
  return [route, go];
}

export interface Context {
  source: Source;
  route: Route;
  go: Go;
}

const PageContext = createContext<Context | null>(null);
export const Provider = PageContext.Provider;

export function usePage(): Context {
  const context = useContext(PageContext);
  if (!context) throw new Error("outside of the page");
  return context;
}

/** The link to a route made of the given parts alone. */
export function href(parts: Partial<Route>): string {
  return format({ ...emptyRoute(), ...parts });
}

export type Loaded<Value> =
  { state: "loading" } | { state: "failed"; message: string } | { state: "ready"; value: Value };

const NOTHING: Loaded<null> = { state: "ready", value: null };

/** A document that is wanted or not, null at once where it is not: see `useDocument`. */
export function useWanted<Value>(key: string, load: (() => Promise<Value | null>) | null): Loaded<Value | null> {
  const loaded = useDocument<Value | null>(load ? key : "", load ?? (() => Promise.resolve(null)), load !== null);
  return load ? loaded : NOTHING;
}

/** A document, fetched again when the key changes; the last one stays visible while the next is on its way. */
export function useDocument<Value>(key: string, load: () => Promise<Value>, wanted = true): Loaded<Value> {
  const [held, setHeld] = useState<{ key: string; loaded: Loaded<Value> }>({ key: "", loaded: { state: "loading" } });
  useEffect(() => {
    if (!wanted) return;
    let current = true;
    load().then(
      (value) => current && setHeld({ key, loaded: { state: "ready", value } }),
      (error: unknown) =>
        current &&
        setHeld({ key, loaded: { state: "failed", message: error instanceof Error ? error.message : String(error) } }),
    );
    return () => {
      current = false;
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the key names the document: a new function for the same key loads the same
  }, [key]);
  const sameSubject = held.key.split("#")[0] === key.split("#")[0];
  return sameSubject ? held.loaded : { state: "loading" };
}
