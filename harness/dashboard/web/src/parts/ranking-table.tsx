// The ranking table: bars with whiskers, rank intervals, tie groups shaded, sortable by every column.
import { useEffect, useRef, useState } from "preact/hooks";
import { bytes, count, isNumber, micros, rate, ranks, seconds, times, timesWithInterval } from "../format";
import { href, usePage } from "../hooks";
import { name as levelName } from "../level";
import type { Metric, Route, Sort } from "../route";
import { type Line, naturallyDescending, type Tie, ties } from "../table";
import { Bar, largest } from "./bar";
import { Word } from "./basics";

const CHUNK = 40; // rows added whenever the end comes near
const ROW_HEIGHT = 44; // pixels, a little less than a row has: the rows drawn at first fill the window

const fitting = (): number => Math.max(12, Math.ceil(innerHeight / ROW_HEIGHT));

interface Column {
  sort: Sort;
  label: string;
  title: string;
  class: string;
}

const THROUGHPUT = {
  sort: "throughput",
  label: "Requests/s",
  title: "Completed 2xx responses per second: median of the replicates",
} as const;
const CPU = {
  sort: "cpu",
  label: "CPU µs/req",
  title: "The server's CPU time per response, in microseconds: median of the replicates",
} as const;

/** The columns: the metric that ranks has the bars, the other one stands further right. */
export function columns(metric: Metric, baseline: string): Column[] {
  const [first, second] = metric === "cpu" ? [CPU, THROUGHPUT] : [THROUGHPUT, CPU];
  return [
    { sort: "rank", label: "Rank", title: "The ranks that the data does not exclude", class: "c-rank" },
    { sort: "name", label: "Implementation", title: "Implementation", class: "c-name" },
    { ...first, class: "c-rate" },
    {
      sort: "ratio",
      label: baseline.length > 0 && baseline.length <= 14 ? `× ${baseline}` : "× baseline",
      title: `Throughput as a multiple of ${baseline || "the baseline"}'s`,
      class: "c-ratio",
    },
    { ...second, class: "c-cpu" },
    {
      sort: "memory",
      label: "Peak memory",
      title: "Peak resident memory of the server's processes",
      class: "c-memory",
    },
    { sort: "first", label: "First answer", title: "Time from start to the first good answer", class: "c-first" },
    { sort: "errors", label: "Errors", title: "Errors over all samples; none counts as throughput", class: "c-errors" },
  ];
}

export function RankingTable({
  subject,
  list,
  of,
  caption,
  testType,
  levelsDiffer,
  baseline,
  said,
}: {
  subject: string; // names what is listed: another subject begins at its top again
  list: Line[];
  of: number;
  caption: string;
  testType: string;
  levelsDiffer: boolean;
  baseline: string;
  said: string[]; // words that hold for every row and stand above the table
}) {
  const { route, go } = usePage();
  const [grown, setGrown] = useState({ of: "", limit: 0 });
  const limit = grown.of === subject ? grown.limit : fitting();
  const setLimit = (next: number): void => setGrown({ of: subject, limit: next });
  const most = largest(list.map((line) => line.standing?.estimate));
  const ascendingRank = route.sort === "rank" && route.descending !== true;
  const tied = ties(list, ascendingRank && route.pinned.length === 0);
  const visible = list.slice(0, limit);
  const sortBy = (sort: Sort): void => {
    const natural = naturallyDescending(sort);
    const now = route.descending ?? naturallyDescending(route.sort);
    go(route.sort === sort ? { descending: now === natural ? !natural : null } : { sort, descending: null });
  };
  const descending = route.descending ?? naturallyDescending(route.sort);
  return (
    <div class="table-frame">
      <table class="ranking" role="table" aria-rowcount={of + 1}>
        <caption class="unseen">{caption}</caption>
        <thead role="rowgroup">
          <tr role="row">
            {columns(route.metric, baseline).map((column) => (
              <th
                key={column.sort}
                role="columnheader"
                scope="col"
                class={column.class}
                aria-sort={route.sort === column.sort ? (descending ? "descending" : "ascending") : undefined}
              >
                <button type="button" class="sort" title={column.title} onClick={() => sortBy(column.sort)}>
                  {column.label}
                </button>
              </th>
            ))}
            <th role="columnheader" scope="col" class="c-words">
              Notes
            </th>
            <th role="columnheader" scope="col" class="c-acts">
              <span class="unseen">Pin, highlight, hide</span>
            </th>
          </tr>
        </thead>
        <tbody role="rowgroup">
          {visible.map((line, index) => (
            <RankingRow
              key={line.name}
              line={line}
              index={index}
              tie={tied[index] ?? null}
              most={most}
              testType={testType}
              showLevel={levelsDiffer}
              said={said}
              pinned={route.pinned.includes(line.name)}
              marked={route.marked.includes(line.name)}
            />
          ))}
        </tbody>
      </table>
      {limit < list.length && (
        <More left={list.length - limit} onMore={() => setLimit(limit + CHUNK)} onAll={() => setLimit(list.length)} />
      )}
    </div>
  );
}

function RankingRow({
  line,
  index,
  tie,
  most,
  testType,
  showLevel,
  pinned,
  marked,
  said,
}: {
  line: Line;
  index: number;
  tie: Tie;
  most: number;
  testType: string;
  showLevel: boolean;
  pinned: boolean;
  marked: boolean;
  said: string[];
}) {
  const { route, go } = usePage();
  const { row, info, standing, name } = line;
  const cpu = route.metric === "cpu";
  const other = cpu ? row.throughput : row.cpu_per_request;
  const classes = [
    tie ? `tied-${tie.parity}` : "",
    tie?.first ? "tie-first" : "",
    tie?.last ? "tie-last" : "",
    marked ? "marked" : "",
    pinned ? "pinned" : "",
    row.ranked ? "" : "unranked",
  ]
    .filter(Boolean)
    .join(" ");
  const facts = [info?.language, info?.platform].filter(
    (fact, at, all) => fact && fact.toLowerCase() !== "none" && all.indexOf(fact) === at && fact !== name,
  );
  const toggle = (key: "pinned" | "marked" | "hidden"): void => {
    const now = route[key];
    go({ [key]: now.includes(name) ? now.filter((other) => other !== name) : [...now, name] } as Partial<Route>);
  };
  return (
    <tr role="row" class={classes} aria-rowindex={index + 2}>
      <td role="cell" class="c-rank">
        {row.ranked && standing ? (
          <span title={`Place ${standing.position} by point estimate${tie ? "; tied with its neighbours" : ""}`}>
            {ranks(standing.rank)}
          </span>
        ) : (
          "–"
        )}
      </td>
      <th role="rowheader" scope="row" class="c-name">
        <a href={href({ page: "run", run: route.run, view: "cell", test: testType, implementation: name })}>
          <bdi>{name}</bdi>
        </a>
        <span class="facts-line">
          {facts.map((fact) => (
            <bdi key={fact}>{fact}</bdi>
          ))}
          {showLevel && row.level && <span>{levelName(row.level)}</span>}
        </span>
      </th>
      <td role="cell" class="c-rate" data-label="requests/s">
        <span class="measure">
          <Bar estimate={standing?.estimate ?? null} most={most} marked={marked} />
          <span class="figure" title={interval(line, cpu)}>
            {cpu ? micros(standing?.estimate.median) : rate(standing?.estimate.median)}
          </span>
        </span>
      </td>
      <td role="cell" class="c-ratio">
        <span title={timesWithInterval(line.ratio)}>{times(line.ratio?.value)}</span>
      </td>
      <td role="cell" class={other ? "c-cpu" : "c-cpu unknown"} data-label={cpu ? "" : "CPU"}>
        {cpu ? rate(other?.estimate.median) : micros(other?.estimate.median)}
        <span class="unit"> {cpu ? "requests/s" : "µs"}</span>
      </td>
      <td role="cell" class={isNumber(row.rss_peak) ? "c-memory" : "c-memory unknown"} data-label="memory">
        {bytes(row.rss_peak)}
      </td>
      <td role="cell" class="c-first" data-label="first answer">
        {seconds(row.first_answer)}
      </td>
      <td role="cell" class={row.errors ? "c-errors some" : "c-errors"} data-label="errors">
        {count(row.errors)}
      </td>
      <td role="cell" class="c-words">
        {row.reason && (
          <span class="reason" title={row.reason}>
            <bdi>{row.reason}</bdi>
          </span>
        )}
        {row.words
          .filter((word) => !said.includes(word))
          .map((word) => (
            <Word key={word} word={word} />
          ))}
      </td>
      <td role="cell" class="c-acts">
        <button
          type="button"
          class="act"
          aria-pressed={pinned}
          aria-label={`Pin ${name}`}
          title="Pin to the top"
          onClick={() => toggle("pinned")}
        >
          ▲
        </button>
        <button
          type="button"
          class="act"
          aria-pressed={marked}
          aria-label={`Highlight ${name}`}
          title="Highlight"
          onClick={() => toggle("marked")}
        >
          ●
        </button>
        <button type="button" class="act" aria-label={`Hide ${name}`} title="Hide" onClick={() => toggle("hidden")}>
          ✕
        </button>
      </td>
    </tr>
  );
}

function interval(line: Line, cpu: boolean): string {
  const estimate = line.standing?.estimate;
  const show = cpu ? (value: number): string => `${micros(value)} µs` : rate;
  if (!estimate) return "";
  if (!isNumber(estimate.low) || !isNumber(estimate.high))
    return `${estimate.replicates} replicate${estimate.replicates === 1 ? "" : "s"}: no interval`;
  return `95 % interval ${show(estimate.low)} to ${show(estimate.high)}, ${estimate.replicates} replicates`;
}

function More({ left, onMore, onAll }: { left: number; onMore: () => void; onAll: () => void }) {
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = end.current;
    if (!element) return;
    const watcher = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && onMore(), {
      rootMargin: "200px",
    });
    watcher.observe(element);
    return () => watcher.disconnect();
  });
  return (
    <div ref={end} class="more">
      <button type="button" onClick={onAll}>
        Show all: {left} more
      </button>
    </div>
  );
}
