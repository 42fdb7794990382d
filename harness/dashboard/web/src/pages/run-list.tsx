// The list of runs, newest first. It also shows unreadable folders, and imports TechEmpower results files.
import { useEffect, useState } from "preact/hooks";
import type { RunList, RunSummary } from "../documents";
import { dateTime } from "../format";
import { href, useDocument, usePage } from "../hooks";
import { testName } from "../load";
import { Problems, Status, Waiting } from "../parts/basics";
import { Preparing } from "../parts/preparing";

const POLL_SECONDS = 2; // poll interval while a run is in progress

export function RunsPage({ onFile }: { onFile: (file: File) => Promise<void> }) {
  const { source, go } = usePage();
  const [version, setVersion] = useState(0);
  const loaded = useDocument(`runs#${version}`, () => source.runs());
  const changing =
    loaded.state === "ready" &&
    (loaded.value.preparing.length > 0 || loaded.value.runs.some((run) => run.status === "running"));
  useEffect(() => {
    if (!changing) return;
    const timer = setInterval(() => setVersion((now) => now + 1), POLL_SECONDS * 1000);
    return () => clearInterval(timer);
  }, [changing]);
  const [selected, setSelected] = useState<string[]>([]);
  useEffect(() => {
    // If the user has no runs, open the newest published round.
    const newest = loaded.state === "ready" && onlyPublished(loaded.value) ? loaded.value.runs[0] : undefined;
    if (newest && location.hash === "") location.replace(href({ page: "run", run: newest.run_id }));
  }, [loaded]);
  if (loaded.state !== "ready") return <Waiting loaded={loaded} subject="the list of runs" />;
  const { runs, preparing, broken, views } = loaded.value;
  const select = (id: string, on: boolean): void =>
    setSelected(
      on ? [...selected.filter((other) => other !== id), id].slice(-2) : selected.filter((other) => other !== id),
    );
  return (
    <>
      <div class="heading">
        <h1>Runs</h1>
        <button
          type="button"
          disabled={selected.length !== 2}
          onClick={() => go({ page: "compare", run: selected[0] ?? "", other: selected[1] ?? "" })}
        >
          Compare {selected.length === 2 ? "the selected runs" : "two runs"}
        </button>
      </div>
      {preparing.length > 0 && <Preparing runs={preparing} />}
      {onlyPublished(loaded.value) && (
        <p class={runs.length === 0 ? "empty" : "notice"}>
          You have no runs yet. Create one with <code>./tfb run --profile smoke</code>.
          {runs.length > 0 && " Each published round names the machine on which it was measured."}
        </p>
      )}
      <ul class="runs">
        {runs.map((run) => (
          <RunItem
            key={run.run_id}
            run={run}
            selected={selected.includes(run.run_id)}
            onSelect={(on) => select(run.run_id, on)}
          />
        ))}
      </ul>
      {broken.length > 0 && (
        <section class="problem" aria-labelledby="broken">
          <h2 id="broken">Unreadable folders</h2>
          <ul>
            {broken.map((item) => (
              <li key={item.run_id}>
                <bdi>{item.run_id}</bdi>/{item.file}: {item.message}
              </li>
            ))}
          </ul>
        </section>
      )}
      {Object.keys(views).length > 0 && (
        <section aria-labelledby="views">
          <h2 id="views">Plugin pages</h2>
          <ul>
            {Object.entries(views).map(([name, title]) => (
              <li key={name}>
                <a href={`views/${encodeURIComponent(name)}`}>
                  <bdi>{title}</bdi>
                </a>
              </li>
            ))}
          </ul>
        </section>
      )}
      <section aria-labelledby="files">
        <h2 id="files">TechEmpower results</h2>
        <p>
          To view a <code>results.json</code> of TechEmpower's toolset, drop it on this page, or{" "}
          <label class="file">
            select a file
            <input
              type="file"
              accept=".json,application/json"
              onChange={(event) => {
                const file = event.currentTarget.files?.[0];
                if (file) void onFile(file);
              }}
            />
          </label>
          . The file is not uploaded.
        </p>
      </section>
    </>
  );
}

/** Return whether the user has no runs: only published runs exist, and no folder is unreadable or in preparation. */
function onlyPublished({ runs, preparing, broken }: RunList): boolean {
  return preparing.length + broken.length === 0 && runs.every((run) => run.published);
}

function RunItem({ run, selected, onSelect }: { run: RunSummary; selected: boolean; onSelect: (on: boolean) => void }) {
  return (
    <li class="run">
      <input
        type="checkbox"
        aria-label={`Select ${run.title} of ${dateTime(run.started_at)} for comparison`}
        checked={selected}
        onChange={(event) => onSelect(event.currentTarget.checked)}
      />
      <div>
        <h2>
          <a href={href({ page: "run", run: run.run_id })}>
            <bdi>{run.title}</bdi>
          </a>{" "}
          <Status status={run.status} />
          {run.published && <span class="status published">published</span>}
        </h2>
        {run.lead && (
          <p class="run-lead">
            <bdi>{run.lead}</bdi>
          </p>
        )}
        <p class="quiet">
          {dateTime(run.started_at)}
          {run.completed_at && ` · ended ${dateTime(run.completed_at)}`} · profile <bdi>{run.profile}</bdi> ·{" "}
          <bdi>{run.machine}</bdi>
          {run.grade && ` · machine grade ${run.grade}`}
        </p>
        <p>
          {run.implementations.length} implementation{run.implementations.length === 1 ? "" : "s"}
          {run.implementations.length <= 8 && (
            <>
              : <bdi>{run.implementations.join(", ")}</bdi>
            </>
          )}{" "}
          · {run.test_types.map(testName).join(", ")}
        </p>
        <Problems problems={run.problems} />
      </div>
    </li>
  );
}
