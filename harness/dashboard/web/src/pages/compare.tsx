// The page for selecting and comparing two runs. harness/stats computes the comparison.
import type { ComparisonDocument, RunDocument, RunSummary } from "../documents";
import { dateTime } from "../format";
import { useDocument, usePage } from "../hooks";
import { Waiting } from "../parts/basics";
import { CopyLink } from "../parts/copy-link";
import { RunComparison } from "./comparison";

export function ComparePage() {
  const { source, route, go } = usePage();
  const runList = useDocument("runs", () => source.runs());
  const loaded = useDocument(`compare ${route.run} ${route.other}`, async () =>
    route.run && route.other
      ? Promise.all([source.run(route.run), source.run(route.other), source.compare(route.run, route.other)])
      : null,
  );
  if (runList.state !== "ready") return <Waiting loaded={runList} subject="the list of runs" />;
  const { runs } = runList.value;
  return (
    <>
      <div class="heading">
        <h1>Compare two runs</h1>
        {route.run && route.other && <CopyLink />}
      </div>
      <div class="toolbar chosen-runs" role="group" aria-label="Runs">
        <RunSelect name="Before" runs={runs} value={route.run} onChange={(run) => go({ run })} />
        <RunSelect name="After" runs={runs} value={route.other} onChange={(other) => go({ other })} />
        <button type="button" onClick={() => go({ run: route.other, other: route.run })}>
          Swap
        </button>
      </div>
      {!route.run || !route.other ? (
        <p class="empty">Select two runs to see how each implementation changed.</p>
      ) : loaded.state !== "ready" ? (
        <Waiting loaded={loaded} subject="the two runs" />
      ) : (
        loaded.value && <LoadedRuns documents={loaded.value} />
      )}
    </>
  );
}

function LoadedRuns({ documents }: { documents: [RunDocument, RunDocument, ComparisonDocument] }) {
  const [before, after, comparison] = documents;
  return <RunComparison before={before} after={after} document={comparison} />;
}

interface RunSelectProps {
  name: string;
  runs: readonly RunSummary[];
  value: string;
  onChange: (id: string) => void;
}

function RunSelect({ name, runs, value, onChange }: RunSelectProps) {
  return (
    <label>
      <span>{name}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        <option value="">select a run</option>
        {runs.map((run) => (
          <option key={run.run_id} value={run.run_id}>
            {run.title}, {dateTime(run.started_at)}
          </option>
        ))}
      </select>
    </label>
  );
}
