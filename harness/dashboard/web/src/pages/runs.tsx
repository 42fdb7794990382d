// The list of runs, newest first, with what cannot be read, and the door for TechEmpower's results files.
import { useState } from "preact/hooks";
import type { RunSummary } from "../documents";
import { moment } from "../format";
import { href, useDocument, usePage } from "../hooks";
import { testName } from "../load";
import { Problems, Status, Waiting } from "../parts/basics";

export function RunsPage({ onFile }: { onFile: (file: File) => Promise<void> }) {
  const { source, go } = usePage();
  const loaded = useDocument("runs", () => source.runs());
  const [chosen, setChosen] = useState<string[]>([]);
  if (loaded.state !== "ready") return <Waiting loaded={loaded} what="the list of runs" />;
  const { runs, broken, views } = loaded.value;
  const choose = (id: string, on: boolean): void =>
    setChosen(on ? [...chosen.filter((other) => other !== id), id].slice(-2) : chosen.filter((other) => other !== id));
  return (
    <>
      <div class="heading">
        <h1>Runs</h1>
        <button
          type="button"
          disabled={chosen.length !== 2}
          onClick={() => go({ page: "compare", run: chosen[0] ?? "", other: chosen[1] ?? "" })}
        >
          Compare {chosen.length === 2 ? "the two chosen" : "two runs"}
        </button>
      </div>
      {runs.every((run) => run.example) && broken.length === 0 && (
        <p class={runs.length === 0 ? "empty" : "notice"}>
          There is no run of your own yet: <code>./tfb run --profile smoke</code> makes one.
          {runs.length > 0 && " Below is the published round, measured on the machine that it names."}
        </p>
      )}
      <ul class="runs">
        {runs.map((run) => (
          <Line
            key={run.run_id}
            run={run}
            chosen={chosen.includes(run.run_id)}
            onChoose={(on) => choose(run.run_id, on)}
          />
        ))}
      </ul>
      {broken.length > 0 && (
        <section class="problem" aria-labelledby="broken">
          <h2 id="broken">Folders that cannot be read</h2>
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
          <h2 id="views">Pages of plugins</h2>
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
          Open a <code>results.json</code> of TechEmpower's toolset: drop it anywhere on this page, or{" "}
          <label class="file">
            choose a file
            <input
              type="file"
              accept=".json,application/json"
              onChange={(event) => {
                const file = event.currentTarget.files?.[0];
                if (file) void onFile(file);
              }}
            />
          </label>
          . It stays in this browser.
        </p>
      </section>
    </>
  );
}

function Line({ run, chosen, onChoose }: { run: RunSummary; chosen: boolean; onChoose: (on: boolean) => void }) {
  return (
    <li class="run">
      <input
        type="checkbox"
        aria-label={`Choose ${run.title} of ${moment(run.started_at)} for comparison`}
        checked={chosen}
        onChange={(event) => onChoose(event.currentTarget.checked)}
      />
      <div>
        <h2>
          <a href={href({ page: "run", run: run.run_id })}>
            <bdi>{run.title}</bdi>
          </a>{" "}
          <Status status={run.status} />
          {run.example && <span class="status example">published</span>}
        </h2>
        {run.lead && (
          <p class="run-lead">
            <bdi>{run.lead}</bdi>
          </p>
        )}
        <p class="quiet">
          {moment(run.started_at)}
          {run.completed_at && ` · ended ${moment(run.completed_at)}`} · profile <bdi>{run.profile}</bdi> ·{" "}
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
