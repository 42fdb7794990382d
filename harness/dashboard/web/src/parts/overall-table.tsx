// The overall table: score with interval, and each test type's ratio in a heat colour relative to its best.
import { factor, isNumber, percent, ranks, span, times } from "../format";
import { href, usePage } from "../hooks";
import { testName } from "../load";
import type { ScoreLine } from "../overall";
import { type Tie, tieClasses, tiesOf } from "../table";
import { Bar } from "./bar";
import { Word } from "./basics";
import { heat } from "./heat";
import { Facts, LanguageDot } from "./language";
import { useGrowing } from "./more";
import { RowMenu } from "./row-menu";

interface Props {
  list: ScoreLine[];
  tests: string[];
  counting: readonly string[]; // those of them that are in the score
  head: string; // of the score's column
  said: readonly string[]; // flags of every row, which stand above the table
  reference: string | null;
  caption: string;
}

const HIGHER = { lowerIsBetter: false };

export function OverallTable({ list, tests, counting, head, caption, said, reference }: Props) {
  const { route } = usePage();
  const subject = `${route.run} ${route.text} ${JSON.stringify(route.facets)}`;
  const [limit, end] = useGrowing(subject, list.length);
  const tied = tiesOf(list.map((line) => line.tie));
  const best = list.reduce((most, line) => Math.max(most, line.score ?? 0), 0) || null;
  return (
    <div class="table-frame ranking-frame">
      <table class="ranking overall" role="table" aria-rowcount={list.length + 1}>
        <caption class="unseen">{caption}</caption>
        <thead role="rowgroup">
          <tr role="row">
            <th role="columnheader" scope="col" class="c-rank">
              Rank
            </th>
            <th role="columnheader" scope="col" class="c-name">
              Implementation
            </th>
            <th role="columnheader" scope="col" class="c-rate">
              {head}
            </th>
            {tests.map((test) => (
              <th
                role="columnheader"
                scope="col"
                class={`c-part${counting.includes(test) ? "" : " not-counted"}`}
                key={test}
              >
                <a href={href({ ...route, view: "table", test, load: "" })}>{testName(test)}</a>
                {!counting.includes(test) && <small>not in the score</small>}
              </th>
            ))}
            <th role="columnheader" scope="col" class="c-acts">
              <span class="unseen">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody role="rowgroup">
          {list.slice(0, limit).map((line, index) => (
            <ScoreRow
              key={line.name}
              line={line}
              tie={tied[index] ?? null}
              tests={tests}
              counting={counting}
              best={best}
              words={line.flags.filter((word) => !said.includes(word))}
              isReference={line.name === reference}
            />
          ))}
        </tbody>
      </table>
      {end}
    </div>
  );
}

interface RowProps {
  line: ScoreLine;
  tests: string[];
  counting: readonly string[]; // those of them that are in the score
  best: number | null;
  tie: Tie;
  words: string[];
  isReference: boolean;
}

function ScoreRow({ line, tests, counting, best, tie, words, isReference }: RowProps) {
  const { route } = usePage();
  const { name, info } = line;
  const pinned = route.pinned.includes(name);
  const figure = isNumber(line.score) ? { median: line.score, low: line.low, high: line.high, processes: null } : null;
  return (
    <tr
      role="row"
      class={[...tieClasses(tie), pinned ? "pinned" : "", figure ? "" : "unranked"].filter(Boolean).join(" ")}
    >
      <td role="cell" class="c-rank">
        {line.rank ? ranks(line.rank) : (line.position ?? "–")}
      </td>
      <th role="rowheader" scope="row" class="c-name">
        <LanguageDot info={info} />
        <a
          href={href({
            ...route,
            view: "cell",
            test: tests.find((test) => Object.hasOwn(line.ratios, test)) ?? "",
            implementation: name,
          })}
        >
          <bdi>{name}</bdi>
        </a>
        <span class="facts-line">
          <Facts info={info} name={name} />
          {words.map((word) => (
            <Word key={word} word={word} />
          ))}
        </span>
      </th>
      <td role="cell" class="c-rate">
        <span class="measure">
          <Bar figure={figure} spec={HIGHER} best={best} pinned={pinned} />
          <span class="figure-pair">
            <span class="figure">{figure ? times(figure.median) : "no score"}</span>
            <small>
              {!figure
                ? missing(line)
                : span(line.low, line.high, factor) || (isReference ? "reference" : `${percent(line.share)} of best`)}
            </small>
          </span>
        </span>
      </td>
      {tests.map((test) => {
        const ratio = line.ratios[test];
        const classes = isNumber(ratio) ? `c-part heat heat-${heat(line.shares[test])}` : "c-part none";
        return (
          <td
            role="cell"
            class={`${classes}${counting.includes(test) ? "" : " not-counted"}`}
            key={test}
            data-label={testName(test)}
          >
            {isNumber(ratio) ? times(ratio) : <span class="quiet">–</span>}
          </td>
        );
      })}
      <td role="cell" class="c-acts">
        <RowMenu name={name} />
      </td>
    </tr>
  );
}

function missing(line: ScoreLine): string {
  return line.missing.length > 0 ? `without ${line.missing.map(testName).join(", ")}` : "";
}
