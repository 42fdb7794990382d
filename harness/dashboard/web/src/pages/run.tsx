// A run: summary and ranking, then charts, and live progress while it is running.
import { useEffect, useMemo } from "preact/hooks";
import type { RunDocument } from "../documents";
import { dateTime } from "../format";
import { href, Provider, useDocument, usePage } from "../hooks";
import { Problems, Status, Waiting } from "../parts/basics";
import { Live } from "../parts/live";
import { useLive } from "../parts/use-live";
import { CellPage } from "./cell";
import { Results } from "./results";

export function RunPage() {
  const { source, route, go } = usePage();
  const live = useLive(route.run);
  const loaded = useDocument(`run ${route.run}#${live.version}`, () => source.run(route.run));
  const leading = loaded.state === "ready" ? loaded.value.ranking.leading : "throughput";
  const page = useMemo(
    () => ({ source, route: route.metricChosen ? route : { ...route, metric: leading }, go }),
    [source, route, leading, go],
  );
  if (loaded.state !== "ready") return <Waiting loaded={loaded} subject={`run ${route.run}`} />;
  const run = loaded.value;
  return (
    <Provider value={page}>
      <Heading doc={run} status={live.document?.status ?? run.run.status} />
      {live.document && <Live document={live.document} connected={live.connected} />}
      <Problems problems={run.problems} />
      {route.view === "cell" ? (
        <CellPage doc={run} version={live.version} />
      ) : (
        <Results doc={run} version={live.version} />
      )}
    </Provider>
  );
}

function Heading({ doc: { run, title, example }, status }: { doc: RunDocument; status: string }) {
  const { machine } = run;
  useEffect(() => {
    document.title = `${title}: tfb`;
  }, [title]);
  return (
    <div class="heading">
      <h1>
        <bdi>{title}</bdi>
      </h1>
      <Status status={status} />
      {example && <span class="status example">published round</span>}
      <p class="quiet">
        {dateTime(run.started_at)} · profile <bdi>{run.profile}</bdi>
        {machine.cpus_online > 0 && (
          <>
            {" "}
            · <bdi>{machine.cpu_model}</bdi>, {machine.cpus_online} CPUs
          </>
        )}
        {machine.grade && (
          <>
            {" "}
            · <a href={href({ page: "run", run: run.run_id, view: "about" })}>machine grade {machine.grade}</a>
          </>
        )}
        {run.completed_at && ` · ended ${dateTime(run.completed_at)}`}
      </p>
    </div>
  );
}
