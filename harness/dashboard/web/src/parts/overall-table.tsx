// The overall table: score with interval, and the ratio of each test type that it is made of.
import type { Estimate, ImplementationInfo, Score } from "../documents";
import { isNumber, ranks, times } from "../format";
import { href, usePage } from "../hooks";
import { testName } from "../level";
import type { Metric } from "../route";
import { Bar, largest } from "./bar";

export interface ScoreLine {
  score: Score;
  info: ImplementationInfo | null;
}

export function OverallTable({
  list,
  testTypes,
  reference,
  metric,
}: {
  list: ScoreLine[];
  testTypes: string[];
  reference: string | null;
  metric: Metric;
}) {
  const { route } = usePage();
  const value = (score: Score): number | null => (metric === "cpu" ? score.cpu_score : score.score);
  const estimate = (score: Score): Estimate | null => {
    const median = value(score);
    if (!isNumber(median)) return null;
    const whisker = metric === "throughput";
    return { median, low: whisker ? score.low : null, high: whisker ? score.high : null, replicates: 0, values: [] };
  };
  const most = largest(list.map(({ score }) => estimate(score)));
  return (
    <div class="table-frame">
      <table class="ranking overall" role="table">
        <caption class="unseen">Overall: geometric mean of ratios to {reference ?? "the reference"}</caption>
        <thead role="rowgroup">
          <tr role="row">
            <th role="columnheader" scope="col" class="c-rank">
              Rank
            </th>
            <th role="columnheader" scope="col" class="c-name">
              Implementation
            </th>
            <th role="columnheader" scope="col" class="c-rate">
              {metric === "cpu" ? "CPU score" : "Score"}
            </th>
            {testTypes.map((test) => (
              <th role="columnheader" scope="col" class="c-part" key={test}>
                {testName(test)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {list.map(({ score, info }) => (
            <tr
              role="row"
              key={score.implementation}
              class={[
                route.marked.includes(score.implementation) ? "marked" : "",
                isNumber(value(score)) ? "" : "unranked",
              ]
                .join(" ")
                .trim()}
            >
              <td role="cell" class="c-rank">
                {metric === "cpu" ? "–" : ranks(score.rank)}
              </td>
              <th role="rowheader" scope="row" class="c-name">
                <a
                  href={href({
                    page: "run",
                    run: route.run,
                    view: "cell",
                    test: Object.keys(score.ratios)[0] ?? testTypes[0] ?? "",
                    implementation: score.implementation,
                  })}
                >
                  <bdi>{score.implementation}</bdi>
                </a>
                <span class="facts-line">{info && <bdi>{info.language}</bdi>}</span>
              </th>
              <td role="cell" class="c-rate">
                <span class="measure">
                  <Bar estimate={estimate(score)} most={most} marked={route.marked.includes(score.implementation)} />
                  <span
                    class="figure"
                    title={
                      isNumber(score.low) && isNumber(score.high)
                        ? `95 % interval ${score.low.toFixed(3)} to ${score.high.toFixed(3)}`
                        : ""
                    }
                  >
                    {isNumber(value(score))
                      ? (value(score) as number).toFixed(3)
                      : score.missing.length
                        ? "no score"
                        : "–"}
                  </span>
                </span>
              </td>
              {testTypes.map((test) => (
                <td role="cell" class="c-part" key={test} data-label={testName(test)}>
                  {isNumber(score.ratios[test]) ? times(score.ratios[test]) : <span class="reason">missing</span>}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
