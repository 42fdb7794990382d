// A run: its ranking above the fold, the charts behind it, and the live view while it goes on.
import { useEffect, useMemo } from "preact/hooks";
import type { RunDocument, Score, Table, TestDocument } from "../documents";
import { moment, seconds } from "../format";
import { href, useDocument, usePage } from "../hooks";
import { label, name as levelName, testName } from "../level";
import { Problems, Status, Tabs, Waiting, Word } from "../parts/basics";
import { Charts } from "../parts/charts";
import { ExportMenu } from "../parts/export-menu";
import { Live, useLive } from "../parts/live";
import { OverallTable } from "../parts/overall-table";
import { RankingTable } from "../parts/ranking-table";
import { Toolbar } from "../parts/toolbar";
import type { View } from "../route";
import { byName, commonWords, lines, matcher, shown } from "../table";
import { About } from "./about";
import { CellPage } from "./cell";

const OVERALL = "overall";
const VIEWS: { id: View; label: string }[] = [
  { id: "table", label: "Ranking" },
  { id: "load", label: "Over load" },
  { id: "latency", label: "Latency" },
  { id: "efficiency", label: "Efficiency" },
  { id: "pairs", label: "A against B" },
  { id: "about", label: "Machine and method" },
];

export function RunPage() {
  const { source, route } = usePage();
  const live = useLive(route.run);
  const loaded = useDocument(`run ${route.run}#${live.version}`, () => {
    if (live.version) source.forget(route.run);
    return source.run(route.run);
  });
  if (loaded.state !== "ready") return <Waiting loaded={loaded} what={`run ${route.run}`} />;
  const document = loaded.value;
  return (
    <>
      <Heading document={document} status={live.status || document.run.status} />
      {(document.run.status === "running" || live.status) && (
        <Live live={live} progress={live.progress ?? document.progress} />
      )}
      <Problems problems={document.problems} />
      {route.view === "cell" ? (
        <CellPage document={document} />
      ) : (
        <Results document={document} version={live.version} />
      )}
    </>
  );
}

function Heading({ document: { run }, status }: { document: RunDocument; status: string }) {
  const { machine } = run;
  const blocks = run.blocks_expected;
  useEffect(() => {
    document.title = `${run.name || run.run_id}: tfb`;
  }, [run.name, run.run_id]);
  return (
    <div class="heading">
      <h1>
        <bdi>{run.name || run.run_id}</bdi>
      </h1>
      <Status status={status} />
      <p class="quiet">
        {moment(run.started_at)} · profile <bdi>{run.profile}</bdi>
        {blocks > 0 && ` · ${blocks} block${blocks === 1 ? "" : "s"}`}
        {machine.cpus_online > 0 && (
          <>
            {" "}
            · <bdi>{machine.cpu_model}</bdi>, {machine.cpus_online} CPUs
          </>
        )}
        {machine.grade && (
          <>
            {" "}
            ·{" "}
            <a href={href({ page: "run", run: run.run_id, view: "about" })} title={machine.concerns.join("; ")}>
              machine grade {machine.grade}
            </a>
          </>
        )}
        {run.completed_at && ` · took ${seconds(run.completed_at - run.started_at)}`}
      </p>
    </div>
  );
}

function Results({ document, version }: { document: RunDocument; version: number }) {
  const { source, route, go } = usePage();
  const { run, ranking } = document;
  const testTypes = Object.keys(ranking.test_types);
  const tabs = [
    ...testTypes,
    ...(ranking.overall.some((score) => Object.keys(score.ratios).length > 0) ? [OVERALL] : []),
  ];
  const test = tabs.includes(route.test) ? route.test : (tabs[0] ?? "");
  const levels = run.levels[test] ?? [];
  const needsLevels = route.level !== "" || route.view === "load";
  const details = useDocument<TestDocument | null>(`test ${route.run} ${test} ${needsLevels}#${version}`, async () =>
    needsLevels && test !== OVERALL && test ? source.test(route.run, test) : null,
  );
  const headline = ranking.test_types[test]?.headline ?? null;
  const atLevel =
    details.state === "ready"
      ? details.value?.levels.find((table) => table.level && label(table.level) === route.level)
      : undefined;
  const table = route.level === "" ? headline : (atLevel ?? null);
  const infos = useMemo(() => byName(run), [run]);
  const baselines = useMemo(
    () => headline?.rows.filter((row) => row.throughput).map((row) => row.implementation) ?? [],
    [headline],
  );
  if (tabs.length === 0)
    return (
      <p class="empty">
        {run.status === "running"
          ? "No block has been measured yet: the ranking appears with the first."
          : "This run has no ranking: nothing was measured."}
      </p>
    );
  const overall = test === OVERALL;
  const views = overall ? VIEWS.filter(({ id }) => id === "table" || id === "about") : VIEWS;
  const view = views.some(({ id }) => id === route.view) ? route.view : "table";
  const headlineName = headline?.level ? `headline: ${levelName(headline.level)}` : "headline: each at its best";
  return (
    <>
      <Tabs
        label="Test types"
        panel="results"
        chosen={test}
        onChoose={(id) => go({ test: id, level: "" })}
        tabs={tabs.map((id) => ({ id, label: id === OVERALL ? "Overall" : testName(id) }))}
      />
      <div id="results" role="tabpanel" aria-label={overall ? "Overall" : testName(test)} class="results">
        <div class="bar-above">
          <Tabs
            quiet
            label="Views"
            panel="view"
            chosen={view}
            onChoose={(id) => go({ view: id as View })}
            tabs={views}
          />
          {view !== "about" && (
            <Toolbar
              levels={levels}
              headline={headlineName}
              infos={run.implementations}
              baselines={baselines}
              reference={ranking.reference}
              overall={overall}
              sortable={view === "table"}
              hasCpu={
                overall
                  ? ranking.overall.some((score) => score.cpu_score !== null)
                  : (headline?.rows.some((row) => row.cpu_per_request) ?? false)
              }
            >
              {!overall && view === "table" && table && <ExportMenu document={document} table={table} test={test} />}
            </Toolbar>
          )}
        </div>
        <div id="view" role="tabpanel" aria-label={views.find(({ id }) => id === view)?.label ?? ""}>
          {view === "about" ? (
            <About document={document} />
          ) : overall ? (
            <Overall document={document} />
          ) : !table ? (
            <Waiting
              loaded={details.state === "ready" ? { state: "failed", message: "this level has no table" } : details}
              what={`level ${route.level}`}
            />
          ) : view === "table" ? (
            <Ranked table={table} document={document} test={test} />
          ) : (
            <Charts
              view={view}
              table={table}
              document={document}
              test={test}
              infos={infos}
              details={details.state === "ready" ? details.value : null}
              version={version}
            />
          )}
        </div>
      </div>
    </>
  );
}

function Ranked({ table, document, test }: { table: Table; document: RunDocument; test: string }) {
  const { route } = usePage();
  const { ranking, run } = document;
  const infos = useMemo(() => byName(run), [run]);
  const all = useMemo(
    () => lines(table, infos, route.metric, route.base, ranking.reference),
    [table, infos, route.metric, route.base, ranking.reference],
  );
  const list = shown(all, route);
  const best = new Set(table.rows.map((row) => (row.level ? label(row.level) : "")).filter(Boolean));
  const said = useMemo(() => commonWords(all), [all]);
  const intervals = all.some((line) => line.standing && line.standing.estimate.low !== null);
  return (
    <>
      {said.length > 0 && (
        <p class="said">
          Every row here:{" "}
          {said.map((word) => (
            <Word key={word} word={word} />
          ))}
        </p>
      )}
      <RankingTable
        subject={`${test} ${route.level} ${route.text} ${JSON.stringify(route.facets)}`}
        list={list}
        of={all.length}
        caption={`${testName(test)}: implementations by ${route.metric === "cpu" ? "CPU per request" : "throughput"}`}
        testType={test}
        levelsDiffer={table.level === null && best.size > 1}
        baseline={route.base || ranking.reference || ""}
        said={said}
      />
      <p class="legend-line quiet">
        {list.length < all.length && (
          <strong>
            {list.length} of {all.length} shown; ranks are among all {all.length}.{" "}
          </strong>
        )}
        {list.length === 0 && <strong>Nothing matches the filter. </strong>}
        {intervals
          ? `Whiskers are ${Math.round(ranking.confidence * 100)} % intervals of the median over replicates. `
          : "There is one replicate of each, so nothing has an interval, and no rank is excluded. "}
        Rank 2–4 reads: somewhere from second to fourth. <span class="swatch" aria-hidden="true" /> Shaded neighbours
        are tied: their difference may be chance.
      </p>
      <Notes notes={ranking.notes} />
    </>
  );
}

function Overall({ document }: { document: RunDocument }) {
  const { route } = usePage();
  const { run, ranking } = document;
  const infos = useMemo(() => byName(run), [run]);
  const matches = matcher(route);
  const value = (score: Score): number =>
    (route.metric === "cpu" ? score.cpu_score : score.score) ?? Number.NEGATIVE_INFINITY;
  const list = ranking.overall
    .filter((score) => matches(score.implementation, infos.get(score.implementation) ?? null))
    .sort((a, b) => value(b) - value(a))
    .map((score) => ({ score, info: infos.get(score.implementation) ?? null }));
  return (
    <>
      <OverallTable
        list={list}
        testTypes={Object.keys(ranking.test_types)}
        reference={ranking.reference}
        metric={route.metric}
      />
      <p class="legend-line quiet">
        The score is the geometric mean of the throughput ratios to <bdi>{ranking.reference ?? "the reference"}</bdi>{" "}
        over the test types; one that lacks a test type has no score, rather than a zero.
        {route.metric === "cpu" &&
          " The CPU score is the same of the reference's CPU per request over the implementation's own."}{" "}
        Scoring version {ranking.scoring_version}.
      </p>
      <Notes notes={ranking.notes} />
    </>
  );
}

function Notes({ notes }: { notes: readonly string[] }) {
  if (notes.length === 0) return null;
  return (
    <ul class="notes quiet">
      {notes.map((note) => (
        <li key={note}>
          <bdi>{note}</bdi>
        </li>
      ))}
    </ul>
  );
}
