// A run's page: the live progress until the run ends, and the results or a cell.
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import type { RunDocument } from "../documents";
import { dateTime } from "../format";
import { href, Provider, useDocument, usePage } from "../hooks";
import { Problems, Status } from "../parts/basics";
import { CopyLink } from "../parts/copy-link";
import { Live } from "../parts/live";
import { Unavailable } from "../parts/preparing";
import { useLive } from "../parts/use-live";
import { CellPage } from "./cell";
import { Results } from "./results";

export function RunPage() {
  const { source, route, go } = usePage();
  const [attempt, setAttempt] = useState(0);
  const live = useLive(route.run, attempt);
  const retry = useCallback(() => setAttempt((now) => now + 1), []);
  const loaded = useDocument(`run ${route.run}#${live.version} ${attempt} ${route.baseline}`, () =>
    source.run(route.run, route.baseline),
  );
  const leading = loaded.state === "ready" ? loaded.value.ranking.leading : "throughput";
  const page = useMemo(
    () => ({ source, route: route.metricChosen ? route : { ...route, metric: leading }, go }),
    [source, route, leading, go],
  );
  if (loaded.state !== "ready") return <Unavailable id={route.run} loaded={loaded} onRetry={retry} />;
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

function Heading({ doc: { run, title, published }, status }: { doc: RunDocument; status: string }) {
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
      {published && <span class="status published">published</span>}
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
        {run.completed_at && ` · ended ${dateTime(run.completed_at)}`} · <CopyLink />
      </p>
    </div>
  );
}
