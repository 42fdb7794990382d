// The overall score: tests chosen, heat colours relative to the best of each test.
import { useMemo } from "preact/hooks";
import type { ImplementationInfo, RunDocument } from "../documents";
import { scoreBars, scoreCells } from "../exported";
import { bestVariants, matcher } from "../filter";
import { times } from "../format";
import { usePage, useWanted } from "../hooks";
import { measured, type MetricSpec, SPECS } from "../metrics";
import { scorable, type ScoreLine, scoreLines } from "../overall";
import { BarsExport } from "../parts/export-menu";
import { STEPS } from "../parts/heat";
import { Notes } from "../parts/notes";
import { OverallTable } from "../parts/overall-table";
import { Said } from "../parts/basics";
import { Toolbar } from "../parts/toolbar";
import { ScoredTests } from "../parts/scored-tests";
import type { Route, View } from "../route";
import { scoresOver } from "../source";
import { commonFlags, tiesOf } from "../table";
import { Groups } from "../views/groups";

interface Props {
  doc: RunDocument;
  infos: ReadonlyMap<string, ImplementationInfo>;
  view: View;
  version: number;
}

export function Overall({ doc, infos, view, version }: Props) {
  const { source, route } = usePage();
  const { run, ranking } = doc;
  const tests = useMemo(() => scorable(ranking), [ranking]);
  const counting = useMemo(() => tests.filter((test) => !route.without.includes(test)), [tests, route.without]);
  const estimated = route.metric === "throughput" || route.metric === "cpu";
  const asked = ranking.reference !== null && estimated && counting.length > 0 ? counting : null;
  const known = asked && scoresOver(doc, asked);
  const scores = useWanted(
    `overall ${route.run} ${asked?.join(" ") ?? ""}#${version}`,
    asked && !known ? () => source.overall(route.run, asked) : null,
  );
  const served = known ?? (scores.state === "ready" ? scores.value : null);
  const all = useMemo(
    () => scoreLines(ranking, infos, route.metric, counting, served),
    [ranking, infos, route.metric, counting, served],
  );
  const list = kept(all, infos, route);
  const said = useMemo(() => commonFlags(all.filter((line) => line.score !== null).map((line) => line.flags)), [all]);
  const spec = SPECS[route.metric];
  const metrics = useMemo(
    () => measured(Object.values(ranking.test_types).flatMap((test) => test.headline.rows)),
    [ranking],
  );
  const title = `Overall score by ${spec.name}: ${doc.title}`;
  return (
    <>
      <Toolbar loads={[]} headline="" infos={run.implementations} metrics={metrics} columns={null}>
        <ScoredTests tests={tests} counting={counting} />
        <BarsExport
          title={title}
          cells={() => scoreCells(list, tests)}
          drawn={() => ({ heading: title, rows: scoreBars(list) })}
        />
      </Toolbar>
      {view === "groups" ? (
        <Groups
          members={list.flatMap((line) =>
            line.score !== null && line.share !== null
              ? [{ name: line.name, info: line.info, value: line.score, share: line.share }]
              : [],
          )}
          lowerIsBetter={false}
          what={route.metric === "throughput" ? "score" : `${spec.name} score`}
          subject="Overall"
          format={times}
        />
      ) : (
        <>
          <Said words={said} />
          <OverallTable
            list={list}
            tests={tests}
            counting={counting}
            head={headOf(spec, ranking.reference)}
            said={said}
            reference={ranking.reference}
            caption={`Overall: geometric mean of ${spec.name} over ${tests.length} test types`}
          />
        </>
      )}
      <Explanation list={list} all={all} doc={doc} />
      <Notes notes={ranking.notes} />
    </>
  );
}

/** What the score is: how many times better than the reference. */
function headOf(spec: MetricSpec, reference: string | null): string {
  if (reference === null) return `${spec.name} score`;
  return spec.lowerIsBetter ? `× less ${spec.name} than ${reference}` : `× ${spec.name} of ${reference}`;
}

function kept(all: readonly ScoreLine[], infos: ReadonlyMap<string, ImplementationInfo>, route: Route): ScoreLine[] {
  const matches = matcher(route);
  const matching = all.filter((line) => matches(line.name, line.info));
  const names = matching.map((line) => line.name);
  const variants = route.variants ? bestVariants(names, infos) : new Set(names);
  const pins = (line: ScoreLine): number => Number(route.pinned.includes(line.name));
  return matching.filter((line) => variants.has(line.name)).sort((a, b) => pins(b) - pins(a));
}

interface ExplanationProps {
  list: ScoreLine[];
  all: ScoreLine[];
  doc: RunDocument;
}

function Explanation({ list, all, doc: { ranking } }: ExplanationProps) {
  const intervals = all.some((line) => line.low !== null);
  const tied = tiesOf(list.map((line) => line.tie)).some((tie) => tie !== null);
  return (
    <p class="legend-line quiet">
      {list.length < all.length && (
        <strong>
          {list.length} of {all.length} shown; ranks are among all.{" "}
        </strong>
      )}
      {list.length === 0 && <strong>Nothing matches the filter. </strong>}
      <span class="heat-key">
        best
        {Array.from({ length: STEPS }, (_, step) => (
          <i key={step} class={`heat-${step}`} aria-hidden="true" />
        ))}
        a tenth of it
      </span>{" "}
      The score is the geometric mean of the tests' factors beside it; one that lacks a test has no score, rather than a
      zero.{" "}
      {intervals
        ? `Small print: 95 % intervals; ranks are the possible ranks${tied ? ", and shaded neighbours are tied" : ""}.`
        : "These are point estimates: intervals and possible ranks are the harness's own, of throughput and CPU per request."}{" "}
      Scoring version {ranking.scoring_version}.
    </p>
  );
}
