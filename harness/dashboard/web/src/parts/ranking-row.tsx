// One row of the ranking.
import { bytes, count, percent, ranks, seconds } from "../format";
import { href, usePage } from "../hooks";
import { name as loadName } from "../load";
import type { MetricSpec } from "../metrics";
import { type Line, type Tie, tieClasses } from "../table";
import { Bar } from "./bar";
import { Word } from "./basics";
import type { Columns } from "./columns";
import { Facts, LanguageDot } from "./language";
import { RowMenu } from "./row-menu";
import { RatioPair, SmallPrint } from "./small";

interface Props {
  line: Line;
  index: number;
  tie: Tie;
  best: number | null;
  columns: Columns;
  testType: string;
  showLoad: boolean;
  said: string[];
  pinned: boolean;
}

export function RankingRow({ line, index, tie, best, columns, testType, said, ...state }: Props) {
  const { route } = usePage();
  const { row, info, name } = line;
  const { spec } = columns;
  const classes = [...tieClasses(tie), state.pinned ? "pinned" : "", row.ranked || !columns.ranked ? "" : "unranked"]
    .filter(Boolean)
    .join(" ");
  return (
    <tr role="row" class={classes} aria-rowindex={index + 2}>
      {columns.ranked && (
        <td role="cell" class="c-rank">
          {rankText(line)}
        </td>
      )}
      <th role="rowheader" scope="row" class="c-name">
        <LanguageDot info={info} />
        <a href={href({ ...route, view: "cell", test: testType, implementation: name })}>
          <bdi>{name}</bdi>
        </a>
        <span class="facts-line">
          <Facts info={info} name={name} />
          {state.showLoad && row.load && <span>{loadName(row.load)}</span>}
        </span>
      </th>
      <td role="cell" class="c-rate" data-label={spec.column}>
        <span class="measure">
          {columns.ranked && <Bar figure={line.figure} spec={spec} best={best} pinned={state.pinned} />}
          <SmallPrint
            value={line.figure?.median}
            low={line.figure?.low}
            high={line.figure?.high}
            show={spec.figure}
            strong
          />
        </span>
      </td>
      {columns.share && (
        <td role="cell" class="c-share">
          {percent(line.share)}
        </td>
      )}
      {columns.ratio && (
        <td role="cell" class="c-ratio">
          <RatioPair ratio={line.ratio} />
        </td>
      )}
      {columns.others.map((other) => (
        <OtherMetric key={other.id} spec={other} line={line} />
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
        <td role="cell" class="c-words">
          {row.reason && (
            <span class="reason">
              <bdi>{row.reason}</bdi>
            </span>
          )}
          {row.flags
            .filter((word) => !said.includes(word))
            .map((word) => (
              <Word key={word} word={word} />
            ))}
        </td>
      )}
      <td role="cell" class="c-acts">
        <RowMenu name={name} />
      </td>
    </tr>
  );
}

function rankText({ row, standing, position }: Line): string {
  if (!row.ranked) return "–";
  return standing ? ranks(standing.rank) : position === null ? "–" : String(position);
}

/** A metric that the table is not ranked by. */
function OtherMetric({ spec, line }: { spec: MetricSpec; line: Line }) {
  const value = spec.value(line.row);
  const estimate = spec.standing(line.row)?.estimate;
  return (
    <td role="cell" class={`c-other c-${spec.id}${value === null ? " unknown" : ""}`} data-label={spec.column}>
      {spec.id === "memory" ? (
        bytes(value)
      ) : (
        <SmallPrint value={value} low={estimate?.low} high={estimate?.high} show={spec.figure} />
      )}
    </td>
  );
}
