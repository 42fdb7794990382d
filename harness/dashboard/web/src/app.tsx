// The application's root component. It shows the header and the selected page, and opens dropped files.
import { useCallback, useEffect, useState } from "preact/hooks";
import { href, Provider, useRoute } from "./hooks";
import { ClaimsPage } from "./pages/claims";
import { ComparePage } from "./pages/compare";
import { RunPage } from "./pages/run";
import { RunsPage } from "./pages/run-list";
import { emptyRoute } from "./route";
import { EmbeddedSource, ServerSource, type Source } from "./source";
import { applyTheme, type Theme, THEMES, theme } from "./theme";

export function App({ source }: { source: Source }) {
  const [route, go] = useRoute();
  const [error, setError] = useState("");
  const page = source instanceof EmbeddedSource ? "run" : route.page;

  const open = useCallback(
    async (file: File): Promise<void> => {
      if (!(source instanceof ServerSource)) return;
      try {
        const id = source.open(file.name, await file.text());
        go({ ...emptyRoute(), page: "run", run: id });
        setError("");
      } catch (cause) {
        setError(`${file.name}: ${cause instanceof Error ? cause.message : String(cause)}`);
      }
    },
    [source, go],
  );

  useEffect(() => {
    if (!(source instanceof ServerSource)) return;
    const over = (event: DragEvent): void => event.preventDefault();
    const drop = (event: DragEvent): void => {
      event.preventDefault();
      const file = event.dataTransfer?.files[0];
      if (file) void open(file);
    };
    addEventListener("dragover", over);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", over);
      removeEventListener("drop", drop);
    };
  }, [source, open]);

  useEffect(() => {
    if (page !== "run") document.title = `${page === "runs" ? "Runs" : page === "compare" ? "Compare" : "Claims"}: tfb`;
  }, [page]);

  return (
    <Provider value={{ source, route, go }}>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("main")?.focus();
        }}
      >
        Skip to the results
      </a>
      <header class="top">
        <a class="brand" href={source instanceof EmbeddedSource ? href({ page: "run", run: source.id }) : href({})}>
          tfb <span>web-framework benchmark</span>
        </a>
        {source instanceof EmbeddedSource && source.links.length > 0 ? (
          <nav aria-label="Site">
            {source.links.map(([title, address]) => (
              <a key={title} href={address}>
                {title}
              </a>
            ))}
          </nav>
        ) : source instanceof EmbeddedSource ? (
          <p class="saved-run">Saved run: this file contains all data</p>
        ) : (
          <nav aria-label="Main">
            <a href={href({})} aria-current={route.page === "runs" ? "page" : undefined}>
              Runs
            </a>
            <a href={href({ page: "compare" })} aria-current={route.page === "compare" ? "page" : undefined}>
              Compare
            </a>
            <a href={href({ page: "claims" })} aria-current={route.page === "claims" ? "page" : undefined}>
              Claims
            </a>
          </nav>
        )}
        <ThemeSelect />
      </header>
      <main id="main" tabIndex={-1}>
        {error && (
          <p class="problem" role="alert">
            {error}{" "}
            <button type="button" class="plain" onClick={() => setError("")}>
              Dismiss
            </button>
          </p>
        )}
        {page === "runs" && <RunsPage onFile={open} />}
        {page === "run" && <RunPage key={route.run} />}
        {page === "compare" && <ComparePage />}
        {page === "claims" && <ClaimsPage />}
      </main>
    </Provider>
  );
}

function ThemeSelect() {
  const [selected, setSelected] = useState<Theme>(theme);
  return (
    <label class="theme">
      <span class="quiet">Theme</span>
      <select
        value={selected}
        onChange={(event) => {
          const next = THEMES.find((item) => item === event.currentTarget.value) ?? "system";
          setSelected(next);
          applyTheme(next);
        }}
      >
        <option value="system">System</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
    </label>
  );
}
