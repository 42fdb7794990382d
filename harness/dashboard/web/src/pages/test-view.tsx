// The results of a test type: a toolbar above the table or charts.
import { useMemo } from "preact/hooks";
import type { ImplementationInfo, RunDocument, Table, TestDocument } from "../documents";
import { rankingBars, rankingCells } from "../export-data";
import { usePage } from "../hooks";
import { label, name as loadName, testName } from "../load";
import { bestValue, availableMetrics, SPECS } from "../metrics";
import { rankingColumns } from "../parts/columns";
import { BarsExport } from "../parts/export-menu";
import { Notes } from "../parts/notes";
import { RankingTable } from "../parts/ranking-table";
import { Toolbar } from "../parts/toolbar";
import { VerifiedLine } from "../parts/verified";
import { CommonFlags } from "../parts/basics";
import type { View } from "../route";
import { commonFlags, flagsOfRun, type RankedRow, rankRows, visibleRows, rowTies } from "../table";
import { Charts } from "../views/chart-view";
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
    () => rankRows(table, infos, route.metric, ranking.reference),
    [table, infos, route.metric, ranking.reference],
  );
  const flagsOfAll = useMemo(
    () => commonFlags(all.filter((entry) => entry.row.throughput).map((entry) => entry.row.flags)),
    [all],
  );
  const list = useMemo(() => visibleRows(all, route), [all, route]);
  const spec = SPECS[route.metric];
  const columns = useMemo(
    () => rankingColumns(all, route.metric, ranking.reference, flagsOfAll),
    [all, route.metric, ranking.reference, flagsOfAll],
  );
  const metrics = useMemo(() => availableMetrics(table.rows), [table]);
  const headline = ranking.test_types[test]?.headline;
  const title = `${testName(test)} by ${spec.name}: ${doc.title}`;
  return (
    <>
      <Toolbar
        loads={run.loads[test] ?? []}
        headline={headline?.load ? `headline: ${loadName(headline.load)}` : "best load of each"}
        infos={run.implementations}
        metrics={metrics}
        columns={view === "table" ? columns : null}
        usualBaseline={run.reference}
      >
        {view === "table" && (
          <BarsExport
            title={title}
            cells={() => rankingCells(list)}
            bars={() => ({
              heading: title,
              rows: rankingBars(list, spec, bestValue(spec, table.rows)),
            })}
          />
        )}
      </Toolbar>
      {view === "table" ? (
        <Ranked list={list} all={all} commonFlags={flagsOfAll} columns={columns} doc={doc} table={table} test={test} />
      ) : view === "groups" ? (
        <Groups
          members={list.flatMap((entry) =>
            entry.figure && entry.share !== null
              ? [{ name: entry.name, info: entry.info, value: entry.figure.median, share: entry.share }]
              : [],
          )}
          lowerIsBetter={spec.lowerIsBetter}
          metric={spec.name}
          subject={testName(test)}
          tickUnit={spec.tickUnit}
          format={(value) => [spec.figure(value), spec.id === "cpu" ? "µs" : ""].filter(Boolean).join(" ")}
        />
      ) : (
        <Charts view={view} list={list} doc={doc} test={test} details={details} version={version} />
      )}
    </>
  );
}

interface RankedProps {
  list: RankedRow[];
  all: RankedRow[];
  commonFlags: string[];
  columns: ReturnType<typeof rankingColumns>;
  doc: RunDocument;
  table: Table;
  test: string;
}

function Ranked({ list, all, commonFlags: flagsOfAll, columns, doc: { ranking }, table, test }: RankedProps) {
  const { route } = usePage();
  const runFlags = useMemo(() => flagsOfRun(ranking), [ranking]);
  const loadsDiffer = useMemo(
    () => table.load === null && new Set(table.rows.flatMap((row) => (row.load ? [label(row.load)] : []))).size > 1,
    [table],
  );
  // Memoize the element, so that the table is rendered again only when its properties change.
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
        commonFlags={flagsOfAll}
        baseline={ranking.reference}
      />
    ),
    [test, route.load, route.text, route.facets, list, all, columns, loadsDiffer, flagsOfAll, ranking.reference],
  );
  return (
    <>
      <CommonFlags flags={flagsOfAll.filter((flag) => !runFlags.includes(flag))} scope="table" />
      <VerifiedLine rows={table.rows} />
      {ranked}
      <Legend list={list} all={all} confidence={ranking.confidence} columns={columns} />
      <Notes notes={ranking.notes} />
    </>
  );
}

interface LegendProps {
  list: RankedRow[];
  all: RankedRow[];
  confidence: number;
  columns: ReturnType<typeof rankingColumns>;
}

function Legend({ list, all, confidence, columns }: LegendProps) {
  const ranked = all.some((entry) => entry.row.ranked && entry.standing);
  const tied = rowTies(list, true).some((tie) => tie !== null);
  const ambiguousRanks = list.some(({ standing }) => standing && standing.rank.low < standing.rank.high);
  const intervals = all.some((entry) => entry.figure && entry.figure.low !== null);
  return (
    <p class="legend-line quiet">
      {list.length < all.length && (
        <strong>
          {list.length} of {all.length} shown; ranks refer to all {all.length}.{" "}
        </strong>
      )}
      {list.length === 0 && <strong>No implementation matches the filter. </strong>}
      {columns.share &&
        (columns.spec.lowerIsBetter
          ? "Bars show the best value divided by the row's value, so the longest bar is the best. "
          : "Bars show shares of the best value. ")}
      {intervals && `Small print and whiskers show ${Math.round(confidence * 100)} % intervals for the median. `}
      {ranked &&
        !intervals &&
        ambiguousRanks &&
        "Each implementation was measured in one process, so there are no intervals, and any rank is possible. "}
      {ranked && intervals && ambiguousRanks && "A rank of 2–4 means that the true rank may be 2nd, 3rd or 4th. "}
      {ranked && tied && (
        <>
          <span class="swatch" aria-hidden="true" /> Shaded neighbours are tied; their difference may be due to chance.
        </>
      )}
    </p>
  );
}
