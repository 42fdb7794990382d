// The overall table: scores with intervals, and a heat map of each test type's ratios or values.
import { factor, isNumber, percent, ranks, span, times } from "../format";
import { href, usePage } from "../hooks";
import { testName } from "../load";
import type { MetricSpec } from "../metrics";
import type { ScoreRow } from "../scores";
import { type Tie, tieClasses, groupTies } from "../table";
import { Bar } from "./bar";
import { RowFlags } from "./basics";
import { useBaselineRow } from "./baseline";
import { heat, ratioHeat, type RatioScale } from "./heat";
import { LanguageDot, LanguageFacts } from "./language";
import { useIncrementalRows } from "./incremental-rows";
import { RowMenu } from "./row-menu";
import { SelectRow } from "./selection";

interface Props {
  list: ScoreRow[];
  tests: string[];
  counting: readonly string[]; // test types that count towards the score
  scoreHeader: string; // header of the score column
  commonFlags: readonly string[]; // flags shown above the table instead of in the rows
  reference: string | null;
  spec: MetricSpec;
  scale: RatioScale | null; // colour scale for ratios; null if colours show shares of the best value
  caption: string;
}

const HIGHER_IS_BETTER = { lowerIsBetter: false };

export function OverallTable({ list, tests, counting, scoreHeader, caption, commonFlags, reference, ...cells }: Props) {
  const { route } = usePage();
  const subject = `${route.run} ${route.text} ${JSON.stringify(route.facets)}`;
  const [limit, end] = useIncrementalRows(subject, list.length);
  const tied = groupTies(list.map((row) => row.tieGroup));
  const best = list.reduce((highest, row) => Math.max(highest, row.score ?? 0), 0) || null;
  return (
    <div class="table-frame ranking-frame">
      <table class="ranking overall" role="table" aria-rowcount={list.length + 1}>
        <caption class="visually-hidden">{caption}</caption>
        <thead role="rowgroup">
          <tr role="row">
            <th role="columnheader" scope="col" class="c-rank">
              Rank
            </th>
            <th role="columnheader" scope="col" class="c-name">
              Implementation
            </th>
            <th role="columnheader" scope="col" class="c-rate">
              {scoreHeader}
            </th>
            {tests.map((test) => (
              <th
                role="columnheader"
                scope="col"
                class={`c-part${counting.includes(test) ? "" : " not-counted"}`}
                key={test}
              >
                <a href={href({ ...route, view: "table", test, load: "" })}>{testName(test)}</a>
                {route.absolute && <small>{cells.spec.unit || cells.spec.column}</small>}
                {!counting.includes(test) && <small>not in the score</small>}
              </th>
            ))}
            <th role="columnheader" scope="col" class="c-acts">
              <span class="visually-hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody role="rowgroup">
          {list.slice(0, limit).map((row, index) => (
            <ScoreTableRow
              key={row.name}
              row={row}
              tie={tied[index] ?? null}
              tests={tests}
              counting={counting}
              best={best}
              flags={row.flags.filter((flag) => !commonFlags.includes(flag))}
              isReference={row.name === reference}
              spec={cells.spec}
              scale={cells.scale}
            />
          ))}
        </tbody>
      </table>
      {end}
    </div>
  );
}

interface RowProps {
  row: ScoreRow;
  tests: string[];
  counting: readonly string[]; // test types that count towards the score
  best: number | null;
  tie: Tie;
  flags: string[];
  isReference: boolean;
  spec: MetricSpec;
  scale: RatioScale | null;
}

function ScoreTableRow({ row, tests, counting, best, tie, flags, isReference, spec, scale }: RowProps) {
  const { route } = usePage();
  const { name, info } = row;
  const baselineRow = useBaselineRow(name, row.score !== null);
  const pinned = route.pinned.includes(name);
  const figure = isNumber(row.score) ? { median: row.score, low: row.low, high: row.high, processes: null } : null;
  return (
    <tr
      role="row"
      class={[...tieClasses(tie), pinned ? "pinned" : "", figure ? "" : "unranked", isReference ? "baseline" : ""]
        .filter(Boolean)
        .join(" ")}
      {...baselineRow}
    >
      <td role="cell" class="c-rank">
        {row.rank ? ranks(row.rank) : (row.position ?? "–")}
      </td>
      <th role="rowheader" scope="row" class="c-name">
        <LanguageDot info={info} />
        <a
          href={href({
            ...route,
            view: "cell",
            test: tests.find((test) => Object.hasOwn(row.ratios, test)) ?? "",
            implementation: name,
          })}
        >
          <bdi>{name}</bdi>
        </a>
        <span class="facts-line">
          <LanguageFacts info={info} name={name} />
          <RowFlags flags={flags} />
        </span>
      </th>
      <td role="cell" class="c-rate">
        <span class="measure">
          <Bar figure={figure} spec={HIGHER_IS_BETTER} best={best} pinned={pinned} />
          <span class="figure-pair">
            <span class="figure">{figure ? times(figure.median) : "no score"}</span>
            <small>
              {!figure
                ? missingTests(row)
                : span(row.low, row.high, factor) || (isReference ? "baseline" : `${percent(row.share)} of best`)}
            </small>
          </span>
        </span>
      </td>
      {tests.map((test) => {
        const ratio = row.ratios[test];
        const step = scale && isNumber(ratio) ? ratioHeat(ratio, scale) : heat(row.shares[test]);
        const classes = isNumber(ratio) ? `c-part heat heat-${step}` : "c-part none";
        return (
          <td
            role="cell"
            class={`${classes}${counting.includes(test) ? "" : " not-counted"}`}
            key={test}
            data-label={testName(test)}
          >
            {!isNumber(ratio) ? (
              <span class="quiet">–</span>
            ) : route.absolute ? (
              spec.figure(row.values[test])
            ) : (
              times(ratio)
            )}
          </td>
        );
      })}
      <td role="cell" class="c-acts">
        <SelectRow name={name} />
        <RowMenu name={name} baseline={row.score !== null} />
      </td>
    </tr>
  );
}

function missingTests(row: ScoreRow): string {
  return row.missing.length > 0 ? `without ${row.missing.map(testName).join(", ")}` : "";
}
