// A row of the ranking table.
import { bytes, count, percent, ranks, seconds } from "../format";
import { href, usePage } from "../hooks";
import { name as loadName } from "../load";
import type { MetricSpec } from "../metrics";
import { type RankedRow, type Tie, tieClasses } from "../table";
import { Bar } from "./bar";
import { useBaselineRow } from "./baseline";
import { RowFlags } from "./basics";
import type { Columns } from "./columns";
import { LanguageDot, LanguageFacts } from "./language";
import { RowMenu } from "./row-menu";
import { SelectRow } from "./selection";
import { VerifiedMark } from "./verified";
import { RatioFigure, FigureWithInterval } from "./figure";

interface Props {
  entry: RankedRow;
  index: number;
  tie: Tie;
  best: number | null;
  columns: Columns;
  testType: string;
  showLoad: boolean;
  commonFlags: string[];
  pinned: boolean;
  isBaseline: boolean;
}

export function RankingRow({ entry, index, tie, best, columns, testType, commonFlags, ...state }: Props) {
  const { route } = usePage();
  const { row, info, name } = entry;
  const { spec } = columns;
  const baselineRow = useBaselineRow(name, row.ranked);
  const classes = [
    ...tieClasses(tie),
    state.pinned ? "pinned" : "",
    row.ranked || !columns.ranked ? "" : "unranked",
    state.isBaseline ? "baseline" : "",
  ]
    .filter(Boolean)
    .join(" ");
  return (
    <tr role="row" class={classes} aria-rowindex={index + 2} {...baselineRow}>
      {columns.ranked && (
        <td role="cell" class="c-rank">
          {rankText(entry)}
        </td>
      )}
      <th role="rowheader" scope="row" class="c-name">
        <LanguageDot info={info} />
        <a href={href({ ...route, view: "cell", test: testType, implementation: name })}>
          <bdi>{name}</bdi>
        </a>
        <span class="facts-line">
          <VerifiedMark row={row} />
          <LanguageFacts info={info} name={name} />
          {state.showLoad && row.load && <span>{loadName(row.load)}</span>}
        </span>
      </th>
      <td role="cell" class="c-rate" data-label={spec.column}>
        <span class="measure">
          {columns.ranked && <Bar figure={entry.figure} spec={spec} best={best} pinned={state.pinned} />}
          <FigureWithInterval
            value={entry.figure?.median}
            low={entry.figure?.low}
            high={entry.figure?.high}
            show={spec.figure}
            strong
          />
        </span>
      </td>
      {columns.share && (
        <td role="cell" class="c-share">
          {percent(entry.share)}
        </td>
      )}
      {columns.ratio && (
        <td role="cell" class="c-ratio">
          {state.isBaseline ? <span class="quiet">baseline</span> : <RatioFigure ratio={entry.ratio} />}
        </td>
      )}
      {columns.others.map((other) => (
        <OtherMetric key={other.id} spec={other} entry={entry} />
      ))}
      {columns.startup && (
        <td role="cell" class="c-first" data-label="startup">
          {seconds(row.startup_time)}
        </td>
      )}
      {columns.errors && (
        <td role="cell" class={row.errors ? "c-errors some" : "c-errors"} data-label="errors">
          {count(row.errors)}
        </td>
      )}
      {columns.flags && (
        <td role="cell" class="c-flags">
          {row.reason && (
            <span class="reason">
              <bdi>{row.reason}</bdi>
            </span>
          )}
          <RowFlags flags={row.flags.filter((flag) => !commonFlags.includes(flag))} />
        </td>
      )}
      <td role="cell" class="c-acts">
        <SelectRow name={name} />
        <RowMenu name={name} baseline={row.ranked} />
      </td>
    </tr>
  );
}

function rankText({ row, standing, position }: RankedRow): string {
  if (!row.ranked) return "–";
  return standing ? ranks(standing.rank) : position === null ? "–" : String(position);
}

/** The cell for a metric that is not selected. */
function OtherMetric({ spec, entry }: { spec: MetricSpec; entry: RankedRow }) {
  const value = spec.value(entry.row);
  const estimate = spec.standing(entry.row)?.estimate;
  return (
    <td role="cell" class={`c-other c-${spec.id}${value === null ? " unknown" : ""}`} data-label={spec.column}>
      {spec.id === "memory" ? (
        bytes(value)
      ) : (
        <FigureWithInterval value={value} low={estimate?.low} high={estimate?.high} show={spec.figure} />
      )}
    </td>
  );
}
