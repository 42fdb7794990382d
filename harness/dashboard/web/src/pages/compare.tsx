// Two runs side by side: harness/stats's comparison of each implementation, and what else differed.
import type { ComparisonDocument, RunDocument, RunSummary } from "../documents";
import { moment } from "../format";
import { useDocument, usePage } from "../hooks";
import { Waiting } from "../parts/basics";
import { Compared } from "./compared";

export function ComparePage() {
  const { source, route, go } = usePage();
  const listed = useDocument("runs", () => source.runs());
  const loaded = useDocument(`compare ${route.run} ${route.other}`, async () =>
    route.run && route.other
      ? Promise.all([source.run(route.run), source.run(route.other), source.compare(route.run, route.other)])
      : null,
  );
  if (listed.state !== "ready") return <Waiting loaded={listed} what="the list of runs" />;
  const { runs } = listed.value;
  return (
    <>
      <div class="heading">
        <h1>Compare two runs</h1>
      </div>
      <div class="toolbar" role="group" aria-label="Runs">
        <Choice name="Before" runs={runs} value={route.run} onChange={(run) => go({ run })} />
        <Choice name="After" runs={runs} value={route.other} onChange={(other) => go({ other })} />
        <button type="button" onClick={() => go({ run: route.other, other: route.run })}>
          Swap
        </button>
      </div>
      {!route.run || !route.other ? (
        <p class="empty">Choose two runs to see how each implementation changed.</p>
      ) : loaded.state !== "ready" ? (
        <Waiting loaded={loaded} what="the two runs" />
      ) : (
        loaded.value && <Both loaded={loaded.value} />
      )}
    </>
  );
}

function Both({ loaded }: { loaded: [RunDocument, RunDocument, ComparisonDocument] }) {
  const [before, after, told] = loaded;
  return <Compared before={before} after={after} told={told} />;
}

interface ChoiceProps {
  name: string;
  runs: readonly RunSummary[];
  value: string;
  onChange: (id: string) => void;
}

function Choice({ name, runs, value, onChange }: ChoiceProps) {
  return (
    <label>
      <span>{name}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        <option value="">choose a run</option>
        {runs.map((run) => (
          <option key={run.run_id} value={run.run_id}>
            {run.title}, {moment(run.started_at)}
          </option>
        ))}
      </select>
    </label>
  );
}
