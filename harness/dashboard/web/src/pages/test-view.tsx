// One test type: its toolbar, and its table or charts.
import { useMemo } from "preact/hooks";
import type { ImplementationInfo, RunDocument, Table, TestDocument } from "../documents";
import { rankingBars, rankingCells } from "../exported";
import { usePage } from "../hooks";
import { label, name as loadName, testName } from "../load";
import { bestValue, measured, SPECS } from "../metrics";
import { columnsOf } from "../parts/columns";
import { BarsExport } from "../parts/export-menu";
import { Notes } from "../parts/notes";
import { RankingTable } from "../parts/ranking-table";
import { Toolbar } from "../parts/toolbar";
import { Said } from "../parts/basics";
import type { View } from "../route";
import { commonFlags, type Line, lines, shown, ties } from "../table";
import { Charts } from "../views/charts";
import { Groups } from "../views/groups";

interface Props {
  doc: RunDocument;
  infos: ReadonlyMap<string, ImplementationInfo>;
  table: Table;
  test: string;
  view: View;
  details: TestDocument | null;
  version: number;
}

export function TestView({ doc, infos, table, test, view, details, version }: Props) {
  const { route } = usePage();
  const { run, ranking } = doc;
  const all = useMemo(
    () => lines(table, infos, route.metric, ranking.reference),
    [table, infos, route.metric, ranking.reference],
  );
  const said = useMemo(
    () => commonFlags(all.filter((line) => line.row.throughput).map((line) => line.row.flags)),
    [all],
  );
  const list = useMemo(() => shown(all, route), [all, route]);
  const spec = SPECS[route.metric];
  const columns = useMemo(
    () => columnsOf(all, route.metric, ranking.reference, said),
    [all, route.metric, ranking.reference, said],
  );
  const metrics = useMemo(() => measured(table.rows), [table]);
  const headline = ranking.test_types[test]?.headline;
  const title = `${testName(test)} by ${spec.name}: ${doc.title}`;
  return (
    <>
      <Toolbar
        loads={run.loads[test] ?? []}
        headline={headline?.load ? `headline: ${loadName(headline.load)}` : "headline: each at its best"}
        infos={run.implementations}
        metrics={metrics}
        columns={view === "table" ? columns : null}
      >
        {view === "table" && (
          <BarsExport
            title={title}
            cells={() => rankingCells(list)}
            drawn={() => ({
              heading: title,
              rows: rankingBars(list, spec, bestValue(spec, table.rows)),
            })}
          />
        )}
      </Toolbar>
      {view === "table" ? (
        <Ranked list={list} all={all} said={said} columns={columns} doc={doc} table={table} test={test} />
      ) : view === "groups" ? (
        <Groups
          members={list.flatMap((line) =>
            line.figure && line.share !== null
              ? [{ name: line.name, info: line.info, value: line.figure.median, share: line.share }]
              : [],
          )}
          lowerIsBetter={spec.lowerIsBetter}
          what={spec.name}
          subject={testName(test)}
          format={(value) => [spec.figure(value), spec.id === "cpu" ? "µs" : ""].filter(Boolean).join(" ")}
        />
      ) : (
        <Charts view={view} list={list} doc={doc} test={test} details={details} version={version} />
      )}
    </>
  );
}

interface RankedProps {
  list: Line[];
  all: Line[];
  said: string[];
  columns: ReturnType<typeof columnsOf>;
  doc: RunDocument;
  table: Table;
  test: string;
}

function Ranked({ list, all, said, columns, doc: { ranking }, table, test }: RankedProps) {
  const { route } = usePage();
  const loadsDiffer = useMemo(
    () => table.load === null && new Set(table.rows.flatMap((row) => (row.load ? [label(row.load)] : []))).size > 1,
    [table],
  );
  // The same element while what it shows is the same: its rows are then not compared again.
  const ranked = useMemo(
    () => (
      <RankingTable
        subject={`${test} ${route.load} ${route.text} ${JSON.stringify(route.facets)}`}
        list={list}
        all={all}
        columns={columns}
        caption={`${testName(test)}: implementations by ${columns.spec.name}`}
        testType={test}
        loadsDiffer={loadsDiffer}
        said={said}
      />
    ),
    [test, route.load, route.text, route.facets, list, all, columns, loadsDiffer, said],
  );
  return (
    <>
      <Said words={said} />
      {ranked}
      <Legend list={list} all={all} confidence={ranking.confidence} columns={columns} />
      <Notes notes={ranking.notes} />
    </>
  );
}

interface LegendProps {
  list: Line[];
  all: Line[];
  confidence: number;
  columns: ReturnType<typeof columnsOf>;
}

function Legend({ list, all, confidence, columns }: LegendProps) {
  const ranked = all.some((line) => line.row.ranked && line.standing);
  const tied = ties(list, true).some((tie) => tie !== null);
  const several = list.some(({ standing }) => standing && standing.rank.low < standing.rank.high);
  const intervals = all.some((line) => line.figure && line.figure.low !== null);
  return (
    <p class="legend-line quiet">
      {list.length < all.length && (
        <strong>
          {list.length} of {all.length} shown; ranks are among all {all.length}.{" "}
        </strong>
      )}
      {list.length === 0 && <strong>Nothing matches the filter. </strong>}
      {columns.share &&
        (columns.spec.lowerIsBetter
          ? "Bars are the best's figure over the row's own: the longest is the best. "
          : "Bars are shares of the best. ")}
      {intervals &&
        `Small print and whiskers: ${Math.round(confidence * 100)} % intervals of the median over processes. `}
      {ranked &&
        !intervals &&
        several &&
        "There is one process of each, so nothing has an interval, and no rank is excluded. "}
      {ranked &&
        intervals &&
        several &&
        "Rank is the possible ranks: 2–4 means that the true rank may be 2nd, 3rd or 4th. "}
      {ranked && tied && (
        <>
          <span class="swatch" aria-hidden="true" /> Shaded neighbours are tied: their difference may be chance.
        </>
      )}
    </p>
  );
}
