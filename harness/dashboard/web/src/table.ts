// The ranking table's rows: joined with what is known of each implementation, sorted. Pure; ranks nothing and estimates
// nothing: intervals, ranks and ratios are those of harness/stats.
import type { ImplementationInfo, Ratio, Row, RunInfo, Standing, Table } from "./documents";
import { bestVariants, matcher } from "./filter";
import { isNumber } from "./format";
import { bestValue, type MetricSpec, SPECS, shareOfBest } from "./metrics";
import type { Metric, Route, Sort } from "./route";

export interface Figure {
  median: number;
  low: number | null;
  high: number | null;
  processes: number | null;
}

export interface Line {
  name: string;
  row: Row;
  info: ImplementationInfo | null;
  figure: Figure | null; // of the metric shown
  standing: Standing | null; // of the metric shown, where harness/stats ranks it
  position: number | null; // by the metric shown
  share: number | null; // of the table's best
  ratio: Ratio | null; // of the metric shown, to the reference; to the best where there is none
}

/** The implementations of a run by name. */
export function byName(run: RunInfo): Map<string, ImplementationInfo> {
  return new Map(run.implementations.map((info) => [info.name, info]));
}

/** The lines of a table in rank order of a metric, before any filter. */
export function lines(
  table: Table,
  infos: ReadonlyMap<string, ImplementationInfo>,
  metric: Metric,
  reference: string | null,
): Line[] {
  const spec = SPECS[metric];
  const best = bestValue(spec, table.rows);
  const first = table.rows.find((row) => row.implementation === reference);
  const base = reference === null ? best : first?.ranked ? spec.value(first) : null;
  const all = table.rows.map((row): Line => {
    const standing = spec.standing(row);
    const median = spec.value(row);
    return {
      name: row.implementation,
      row,
      info: infos.get(row.implementation) ?? null,
      figure:
        median === null
          ? null
          : {
              median,
              low: standing?.estimate.low ?? null,
              high: standing?.estimate.high ?? null,
              processes: standing?.estimate.processes ?? null,
            },
      standing,
      position: row.ranked ? (standing?.position ?? null) : null,
      share: row.ranked ? shareOfBest(spec, median, best) : null,
      ratio: ratioTo(spec, row, reference, base),
    };
  });
  const direction = spec.lowerIsBetter ? 1 : -1;
  const key = (line: Line): number =>
    line.position ?? (line.row.ranked && line.figure ? direction * line.figure.median : Number.POSITIVE_INFINITY);
  const unplaced = all.some((line) => line.row.ranked && line.figure && line.position === null);
  const ordered = all
    .map((line, index) => ({ line, index }))
    .sort((a, b) => {
      const [x, y] = unplaced ? [plainKey(a.line, direction), plainKey(b.line, direction)] : [key(a.line), key(b.line)];
      return x === y ? a.index - b.index : x - y;
    })
    .map(({ line }) => line);
  if (!unplaced) return ordered;
  let place = 0;
  return ordered.map((line, index) => {
    if (!line.row.ranked || !line.figure) return line;
    if (ordered[index - 1]?.figure?.median !== line.figure.median) place = index + 1;
    return { ...line, position: place };
  });
}

function plainKey(line: Line, direction: number): number {
  return line.row.ranked && line.figure ? direction * line.figure.median : Number.POSITIVE_INFINITY;
}

/** To the reference, or to the best where there is none; without an interval for a metric that has no estimate. */
function ratioTo(spec: MetricSpec, row: Row, reference: string | null, other: number | null): Ratio | null {
  const standing = spec.standing(row);
  if (standing) return reference === null ? standing.to_best : standing.to_reference;
  const value = spec.value(row);
  return value !== null && other ? { value: value / other, low: null, high: null } : null;
}

/** Whether a column sorts downwards by nature: the best first. */
export function naturallyDescending(sort: Sort): boolean {
  return sort === "throughput" || sort === "density" || sort === "ratio" || sort === "share";
}

/** The lines shown: filtered, sorted; unranked ones last; pinned ones first. Ranks are what they were. */
export function shown(all: readonly Line[], route: Route): Line[] {
  const matches = matcher(route);
  const pinned = new Set(route.pinned);
  const infos = new Map(all.flatMap((line) => (line.info ? [[line.name, line.info] as const] : [])));
  const matching = all.filter((line) => matches(line.name, line.info));
  const variants = route.variants
    ? bestVariants(
        matching.map((line) => line.name),
        infos,
      )
    : null;
  const matched = new Set(matching);
  const kept = all.filter(
    (line) =>
      (pinned.has(line.name) && !route.hidden.includes(line.name)) ||
      (matched.has(line) && (!variants || variants.has(line.name))),
  );
  const natural = naturallyDescending(route.sort);
  const direction = (route.descending ?? natural) ? -1 : 1;
  const keyed = kept.map((line, index) => ({ line, index, key: sortKey(line, route.sort) }));
  keyed.sort((a, b) => {
    const pins = Number(pinned.has(b.line.name)) - Number(pinned.has(a.line.name));
    if (pins) return pins;
    const ranked = Number(b.line.row.ranked) - Number(a.line.row.ranked);
    if (ranked && route.sort !== "name") return ranked;
    return compare(a.key, b.key, direction) || a.index - b.index;
  });
  return keyed.map(({ line }) => line);
}

function compare(a: number | string | null, b: number | string | null, direction: number): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null); // unknown last, either way
  if (typeof a === "string" || typeof b === "string") return direction * String(a).localeCompare(String(b), "en");
  return direction * (a - b);
}

function sortKey(line: Line, sort: Sort): number | string | null {
  const { row } = line;
  const known = (value: number | null | undefined): number | null => (isNumber(value) ? value : null);
  switch (sort) {
    case "rank":
      return known(line.position);
    case "name":
      return line.name.toLowerCase();
    case "throughput":
      return known(row.throughput?.estimate.median);
    case "share":
      return known(line.share);
    case "ratio":
      return known(line.ratio?.value);
    case "cpu":
      return known(row.cpu_per_request?.estimate.median);
    case "memory":
    case "response":
    case "density":
    case "threads":
    case "p50":
    case "p99":
      return SPECS[sort].value(row);
    case "first":
      return known(row.startup_time);
    case "errors":
      return known(row.errors);
  }
}

/** The words that all have: said once above the table, rather than in each row. */
export function commonFlags([first, ...rest]: readonly string[][]): string[] {
  return first && rest.length > 0 ? first.filter((word) => rest.every((flags) => flags.includes(word))) : [];
}

/** Where a line stands in a group of ties among its neighbours in the list; null when it is tied with nobody shown. */
export type Tie = { parity: 0 | 1; first: boolean; last: boolean } | null;

/** The tie of each line; only lists in rank order have any. */
export function ties(list: readonly Line[], inRankOrder: boolean): Tie[] {
  return tiesOf(inRankOrder ? list.map(({ row, standing }) => (row.ranked && standing?.tie_group) ?? null) : []);
}

/** The tie of each place of a list, by the groups that tie; null is in none. */
export function tiesOf(groups: readonly (number | false | null)[]): Tie[] {
  let parity: 0 | 1 = 1;
  return groups.map((mine, index) => {
    if (mine === null || mine === false) return null;
    const before = groups[index - 1] === mine;
    const after = groups[index + 1] === mine;
    if (!before && !after) return null;
    if (!before) parity = parity === 0 ? 1 : 0;
    return { parity, first: !before, last: !after };
  });
}

/** The classes of a row by its tie. */
export function tieClasses(tie: Tie): string[] {
  return tie ? [`tied-${tie.parity}`, tie.first ? "tie-first" : "", tie.last ? "tie-last" : ""] : [];
}
