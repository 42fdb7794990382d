// Hooks that read and change the route in the URL, and hooks that load documents.
import { createContext } from "preact";
import { useCallback, useContext, useEffect, useRef, useState } from "preact/hooks";
import { emptyRoute, format, parse, type Route } from "./route";
import type { Source } from "./source";

export type Go = (change: Partial<Route>, how?: "push" | "replace") => void;

const URL_DELAY = 100; // milliseconds from the last keystroke to the update of the URL, because such updates are slow

/**
 * Return the route, and a function that changes it. A change with "replace", such as text input, replaces the current
 * history entry after a delay. All other changes add an entry.
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
    if (how === "replace") writing.current = setTimeout(write, URL_DELAY);
    else {
      write(); // store pending text input in the current history entry, so the user can go back to it
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
  if (!context) throw new Error("usePage must be called inside the page's Provider");
  return context;
}

/** Return the URL of a route. Missing parts have their default values. */
export function href(parts: Partial<Route>): string {
  return format({ ...emptyRoute(), ...parts });
}

export type Loaded<Value> =
  { state: "loading" } | { state: "failed"; message: string } | { state: "ready"; value: Value };

const NOTHING: Loaded<null> = { state: "ready", value: null };

/** Like useDocument, but returns null without loading anything if `load` is null. */
export function useOptionalDocument<Value>(
  key: string,
  load: (() => Promise<Value | null>) | null,
): Loaded<Value | null> {
  const loaded = useDocument<Value | null>(load ? key : "", load ?? (() => Promise.resolve(null)), load !== null);
  return load ? loaded : NOTHING;
}

/** Load a document whenever `key` changes. If only the text after its # changes, keep the old document meanwhile. */
export function useDocument<Value>(key: string, load: () => Promise<Value>, enabled = true): Loaded<Value> {
  const [latest, setLatest] = useState<{ key: string; loaded: Loaded<Value> }>({
    key: "",
    loaded: { state: "loading" },
  });
  useEffect(() => {
    if (!enabled) return;
    let current = true;
    load().then(
      (value) => current && setLatest({ key, loaded: { state: "ready", value } }),
      (error: unknown) =>
        current &&
        setLatest({
          key,
          loaded: { state: "failed", message: error instanceof Error ? error.message : String(error) },
        }),
    );
    return () => {
      current = false;
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the key identifies the document, so a new function with the same key loads the same document
  }, [key]);
  const sameSubject = latest.key.split("#")[0] === key.split("#")[0];
  return sameSubject ? latest.loaded : { state: "loading" };
}
