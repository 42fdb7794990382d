// A run: its answer and ranking above the fold, the charts behind it, and the live view while it goes on.
import { useEffect, useMemo } from "preact/hooks";
import type { RunDocument } from "../documents";
import { moment } from "../format";
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
  const shown = useMemo(
    () => ({ source, route: route.named ? route : { ...route, metric: leading }, go }),
    [source, route, leading, go],
  );
  if (loaded.state !== "ready") return <Waiting loaded={loaded} what={`run ${route.run}`} />;
  const run = loaded.value;
  const { told } = live;
  return (
    <Provider value={shown}>
      <Heading doc={run} status={told?.status ?? run.run.status} />
      {told && <Live told={told} connected={live.connected} />}
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
        {moment(run.started_at)} · profile <bdi>{run.profile}</bdi>
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
        {run.completed_at && ` · ended ${moment(run.completed_at)}`}
      </p>
    </div>
  );
}
