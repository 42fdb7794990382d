// The overall view: scores over the selected test types, and a heat map of each test type's ratios or values.
import { useMemo } from "preact/hooks";
import type { ImplementationInfo, RunDocument } from "../documents";
import { scoreBars, scoreCells } from "../export-data";
import { bestVariants, matcher } from "../filter";
import { times } from "../format";
import { usePage, useOptionalDocument } from "../hooks";
import { availableMetrics, type MetricSpec, SPECS } from "../metrics";
import { scorable, type ScoreRow, scoreRows } from "../scores";
import { BarsExport } from "../parts/export-menu";
import { type RatioScale, ratioScale, STEPS } from "../parts/heat";
import { FiguresSelect } from "../parts/figures-select";
import { Notes } from "../parts/notes";
import { OverallTable } from "../parts/overall-table";
import { CommonFlags } from "../parts/basics";
import { Toolbar } from "../parts/toolbar";
import { VerifiedLine } from "../parts/verified";
import { ScoredTests } from "../parts/scored-tests";
import type { Route, View } from "../route";
import { scoresFor } from "../source";
import { commonFlags, flagsOfRun, groupTies } from "../table";
import { Groups } from "../views/groups";

interface Props {
  doc: RunDocument;
  infos: ReadonlyMap<string, ImplementationInfo>;
  group: string | null; // group of test types; null for the test types without a group
  view: View;
  version: number;
}

export function Overall({ doc, infos, group, view, version }: Props) {
  const { source, route } = usePage();
  const { run, ranking } = doc;
  const tests = useMemo(() => scorable(ranking, group), [ranking, group]);
  const counting = useMemo(
    () => tests.filter((test) => !route.excludedTests.includes(test)),
    [tests, route.excludedTests],
  );
  const estimated = route.metric === "throughput" || route.metric === "cpu";
  const countedTypes = ranking.reference !== null && estimated && counting.length > 0 ? counting : null;
  const localScores = countedTypes && scoresFor(doc, countedTypes);
  const scores = useOptionalDocument(
    `overall ${route.run} ${countedTypes?.join(" ") ?? ""}#${version} ${ranking.reference ?? ""}`,
    countedTypes && !localScores ? () => source.overall(route.run, countedTypes, route.baseline) : null,
  );
  const served = localScores ?? (scores.state === "ready" ? scores.value : null);
  const all = useMemo(
    () => scoreRows(ranking, infos, route.metric, counting, served, group),
    [ranking, infos, route.metric, counting, served, group],
  );
  const list = visibleScores(all, infos, route);
  const flagsOfAll = useMemo(() => commonFlags(all.filter((row) => row.score !== null).map((row) => row.flags)), [all]);
  const runFlags = useMemo(() => flagsOfRun(ranking), [ranking]);
  const spec = SPECS[route.metric];
  const headlineRows = useMemo(
    () => Object.values(ranking.test_types).flatMap((test) => test.headline.rows),
    [ranking],
  );
  const metrics = useMemo(() => availableMetrics(headlineRows), [headlineRows]);
  const scale = useMemo(
    () => (ranking.reference === null ? null : ratioScale(all.flatMap((row) => Object.values(row.ratios)))),
    [all, ranking.reference],
  );
  const subject = group === null ? "Overall" : `Overall: ${group}`;
  const title = `${subject}: score by ${spec.name}: ${doc.title}`;
  return (
    <>
      <Toolbar
        loads={[]}
        headline=""
        infos={run.implementations}
        metrics={metrics}
        columns={null}
        usualBaseline={run.reference}
      >
        {view === "table" && <FiguresSelect spec={spec} />}
        <ScoredTests tests={tests} counting={counting} />
        <BarsExport
          title={title}
          cells={() => scoreCells(list, tests, route.absolute)}
          bars={() => ({ heading: title, rows: scoreBars(list) })}
        />
      </Toolbar>
      {view === "groups" ? (
        <Groups
          members={list.flatMap((row) =>
            row.score !== null && row.share !== null
              ? [{ name: row.name, info: row.info, value: row.score, share: row.share }]
              : [],
          )}
          lowerIsBetter={false}
          metric={route.metric === "throughput" ? "score" : `${spec.name} score`}
          subject={subject}
          format={times}
        />
      ) : (
        <>
          <CommonFlags flags={flagsOfAll.filter((flag) => !runFlags.includes(flag))} scope="table" />
          <VerifiedLine rows={headlineRows} />
          <OverallTable
            list={list}
            tests={tests}
            counting={counting}
            scoreHeader={scoreHeader(spec, ranking.reference)}
            commonFlags={flagsOfAll}
            reference={ranking.reference}
            spec={spec}
            scale={route.absolute ? null : scale}
            caption={`${subject}: geometric mean of ${spec.name} over ${tests.length} test types`}
          />
        </>
      )}
      {view === "table" && <Explanation list={list} all={all} doc={doc} scale={scale} />}
      <Notes notes={ranking.notes} />
    </>
  );
}

/** Return the header of the score column, for example `throughput ÷ that of es4x`. */
function scoreHeader(spec: MetricSpec, reference: string | null): string {
  if (reference === null) return `${spec.name} score`;
  return spec.lowerIsBetter ? `${spec.name} of ${reference} ÷ own` : `${spec.name} ÷ that of ${reference}`;
}

function visibleScores(
  all: readonly ScoreRow[],
  infos: ReadonlyMap<string, ImplementationInfo>,
  route: Route,
): ScoreRow[] {
  const matches = matcher(route);
  const matching = all.filter((row) => matches(row.name, row.info));
  const names = matching.map((row) => row.name);
  const variants = route.bestVariantsOnly ? bestVariants(names, infos) : new Set(names);
  const pinned = (row: ScoreRow): number => Number(route.pinned.includes(row.name));
  return matching.filter((row) => variants.has(row.name)).sort((a, b) => pinned(b) - pinned(a));
}

interface ExplanationProps {
  list: ScoreRow[];
  all: ScoreRow[];
  doc: RunDocument;
  scale: RatioScale | null;
}

function Explanation({ list, all, doc: { ranking }, scale }: ExplanationProps) {
  const { route } = usePage();
  const [best, worst] =
    route.absolute || !scale
      ? ["best of its test", "a tenth of the best"]
      : [`${times(scale.warmest)} of ${ranking.reference ?? "the baseline"}`, times(scale.coldest)];
  const intervals = all.some((row) => row.low !== null);
  const tied = groupTies(list.map((row) => row.tieGroup)).some((tie) => tie !== null);
  return (
    <p class="legend-line quiet">
      {list.length < all.length && (
        <strong>
          {list.length} of {all.length} shown; ranks refer to all.{" "}
        </strong>
      )}
      {list.length === 0 && <strong>No implementation matches the filter. </strong>}
      <span class="heat-key">
        {best}
        {Array.from({ length: STEPS }, (_, step) => (
          <i key={step} class={`heat-${step}`} aria-hidden="true" />
        ))}
        {worst}
      </span>{" "}
      The score is the geometric mean of the ratios in the selected tests. If any is missing, there is no score.{" "}
      {intervals
        ? `Small print shows 95 % intervals. A rank of 2–4 means that the true rank may be 2nd, 3rd or 4th.${tied ? " Shaded neighbours are tied." : ""}`
        : "These are point estimates. Only throughput and CPU per request have confidence intervals and rank ranges."}{" "}
      Scoring version {ranking.scoring_version}.
    </p>
  );
}
