// Pure functions that join, filter and sort the rows of the ranking table. Intervals, ranks and ratios come from
// harness/stats.
import type { ImplementationInfo, Ranking, Ratio, Row, RunInfo, Standing, Table } from "./documents";
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

export interface RankedRow {
  name: string;
  row: Row;
  info: ImplementationInfo | null;
  figure: Figure | null; // value of the selected metric; the following fields refer to the same metric
  standing: Standing | null; // null if harness/stats does not rank the metric
  position: number | null; // 1-based position in the order from best to worst
  share: number | null; // share of the table's best value
  ratio: Ratio | null; // ratio to the baseline, or to the best if there is no baseline
}

/** Return a run's implementations, keyed by name. */
export function infosByName(run: RunInfo): Map<string, ImplementationInfo> {
  return new Map(run.implementations.map((info) => [info.name, info]));
}

/** Return all rows of a table, best first by a metric. */
export function rankRows(
  table: Table,
  infos: ReadonlyMap<string, ImplementationInfo>,
  metric: Metric,
  reference: string | null,
): RankedRow[] {
  const spec = SPECS[metric];
  const best = bestValue(spec, table.rows);
  const referenceRow = table.rows.find((row) => row.implementation === reference);
  const referenceValue = reference === null ? best : referenceRow?.ranked ? spec.value(referenceRow) : null;
  const all = table.rows.map((row): RankedRow => {
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
      ratio: ratioTo(spec, row, reference, referenceValue),
    };
  });
  const direction = spec.lowerIsBetter ? 1 : -1;
  const key = (entry: RankedRow): number =>
    entry.position ?? (entry.row.ranked && entry.figure ? direction * entry.figure.median : Number.POSITIVE_INFINITY);
  const needsPositions = all.some((entry) => entry.row.ranked && entry.figure && entry.position === null);
  const ordered = all
    .map((entry, index) => ({ entry, index }))
    .sort((a, b) => {
      const [x, y] = needsPositions
        ? [valueKey(a.entry, direction), valueKey(b.entry, direction)]
        : [key(a.entry), key(b.entry)];
      return x === y ? a.index - b.index : x - y;
    })
    .map(({ entry }) => entry);
  if (!needsPositions) return ordered;
  let position = 0;
  return ordered.map((entry, index) => {
    if (!entry.row.ranked || !entry.figure) return entry;
    if (ordered[index - 1]?.figure?.median !== entry.figure.median) position = index + 1;
    return { ...entry, position };
  });
}

function valueKey(entry: RankedRow, direction: number): number {
  return entry.row.ranked && entry.figure ? direction * entry.figure.median : Number.POSITIVE_INFINITY;
}

/**
 * Return the ratio to the baseline, or to the best if there is no baseline. The ratio has an interval only if
 * harness/stats ranks the metric.
 */
function ratioTo(spec: MetricSpec, row: Row, reference: string | null, other: number | null): Ratio | null {
  const standing = spec.standing(row);
  if (standing) return reference === null ? standing.to_best : standing.to_reference;
  const value = spec.value(row);
  return value !== null && other ? { value: value / other, low: null, high: null } : null;
}

/** Return whether sorting by a column puts the highest values first by default. */
export function descendingByDefault(sort: Sort): boolean {
  return sort === "throughput" || sort === "density" || sort === "ratio" || sort === "share";
}

/** Filter and sort the rows. Pinned rows come first and unranked rows last. Ranks still refer to all rows. */
export function visibleRows(all: readonly RankedRow[], route: Route): RankedRow[] {
  const matches = matcher(route);
  const pinned = new Set(route.pinned);
  const infos = new Map(all.flatMap((entry) => (entry.info ? [[entry.name, entry.info] as const] : [])));
  const matching = all.filter((entry) => matches(entry.name, entry.info));
  const variants = route.bestVariantsOnly
    ? bestVariants(
        matching.map((entry) => entry.name),
        infos,
      )
    : null;
  const matched = new Set(matching);
  const visible = all.filter(
    (entry) =>
      (pinned.has(entry.name) && !route.hidden.includes(entry.name)) ||
      (matched.has(entry) && (!variants || variants.has(entry.name))),
  );
  const defaultDescending = descendingByDefault(route.sort);
  const direction = (route.descending ?? defaultDescending) ? -1 : 1;
  const keyed = visible.map((entry, index) => ({ entry, index, key: sortKey(entry, route.sort) }));
  keyed.sort((a, b) => {
    const pinnedOrder = Number(pinned.has(b.entry.name)) - Number(pinned.has(a.entry.name));
    if (pinnedOrder) return pinnedOrder;
    const rankedOrder = Number(b.entry.row.ranked) - Number(a.entry.row.ranked);
    if (rankedOrder && route.sort !== "name") return rankedOrder;
    return compare(a.key, b.key, direction) || a.index - b.index;
  });
  return keyed.map(({ entry }) => entry);
}

function compare(a: number | string | null, b: number | string | null, direction: number): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null); // unknown values come last
  if (typeof a === "string" || typeof b === "string") return direction * String(a).localeCompare(String(b), "en");
  return direction * (a - b);
}

function sortKey(entry: RankedRow, sort: Sort): number | string | null {
  const { row } = entry;
  const known = (value: number | null | undefined): number | null => (isNumber(value) ? value : null);
  switch (sort) {
    case "rank":
      return known(entry.position);
    case "name":
      return entry.name.toLowerCase();
    case "throughput":
      return known(row.throughput?.estimate.median);
    case "share":
      return known(entry.share);
    case "ratio":
      return known(entry.ratio?.value);
    case "cpu":
      return known(row.cpu_per_request?.estimate.median);
    case "memory":
    case "response":
    case "density":
    case "threads":
    case "floor":
    case "p50":
    case "p99":
      return SPECS[sort].value(row);
    case "first":
      return known(row.startup_time);
    case "errors":
      return known(row.errors);
  }
}

/** Return the flags that all rows have in common. The result is empty for a single row. */
export function commonFlags([first, ...rest]: readonly string[][]): string[] {
  return first && rest.length > 0 ? first.filter((flag) => rest.every((flags) => flags.includes(flag))) : [];
}

/** Return the flags that all measured rows of all test types have in common. */
export function flagsOfRun(ranking: Ranking): string[] {
  const rows = Object.values(ranking.test_types).flatMap(({ headline }) => headline.rows);
  return commonFlags(rows.filter((row) => row.throughput).map((row) => row.flags));
}

/** How to shade a row in a group of tied rows; null if no adjacent row is tied. `parity` alternates between groups. */
export type Tie = { parity: 0 | 1; first: boolean; last: boolean } | null;

/** Return the shading of each row. Ties are shaded only while the list is in rank order. */
export function rowTies(list: readonly RankedRow[], inRankOrder: boolean): Tie[] {
  return groupTies(inRankOrder ? list.map(({ row, standing }) => (row.ranked && standing?.tie_group) ?? null) : []);
}

/** Return the shading of each row, given each row's tie group. Adjacent rows of a group have the same shading. */
export function groupTies(groups: readonly (number | false | null)[]): Tie[] {
  let parity: 0 | 1 = 1;
  return groups.map((group, index) => {
    if (group === null || group === false) return null;
    const before = groups[index - 1] === group;
    const after = groups[index + 1] === group;
    if (!before && !after) return null;
    if (!before) parity = parity === 0 ? 1 : 0;
    return { parity, first: !before, last: !after };
  });
}

/** Return the CSS classes for a row's shading. */
export function tieClasses(tie: Tie): string[] {
  return tie ? [`tied-${tie.parity}`, tie.first ? "tie-first" : "", tie.last ? "tie-last" : ""] : [];
}
