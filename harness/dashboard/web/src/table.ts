// The ranking table's rows: joined with what is known of each implementation, filtered, sorted. Pure, and never ranks.
import type { ImplementationInfo, Ratio, Row, RunInfo, Standing, Table } from "./documents";
import { isNumber } from "./format";
import { ratio } from "./ratio";
import { FACETS, type Facet, type Metric, type Route, type Sort } from "./route";

export interface Line {
  name: string;
  row: Row;
  info: ImplementationInfo | null;
  standing: Standing | null; // of the metric shown
  ratio: Ratio | null; // throughput to the baseline
}

/** A blank fact; TechEmpower writes "None" where there is no database or web server. */
export const NO_FACT = "none";

/** The implementations of a run by name. */
export function byName(run: RunInfo): Map<string, ImplementationInfo> {
  return new Map(run.implementations.map((info) => [info.name, info]));
}

/** The lines of a table in rank order, before any filter. */
export function lines(
  table: Table,
  infos: ReadonlyMap<string, ImplementationInfo>,
  metric: Metric,
  base: string,
  reference: string | null,
): Line[] {
  const baseline = base || reference || "";
  const baseRow = table.rows.find((row) => row.implementation === baseline);
  const complete = Math.max(0, ...table.rows.map((row) => row.throughput?.estimate.values.length ?? 0));
  return table.rows.map((row) => ({
    name: row.implementation,
    row,
    info: infos.get(row.implementation) ?? null,
    standing: metric === "cpu" ? row.cpu_per_request : row.throughput,
    ratio: ratioTo(row, baseRow, baseline === reference, complete),
  }));
}

function ratioTo(row: Row, baseRow: Row | undefined, isReference: boolean, complete: number): Ratio | null {
  if (!row.throughput || !baseRow?.throughput) return null;
  if (isReference && row.throughput.to_reference) return row.throughput.to_reference;
  if (row.implementation === baseRow.implementation) return { value: 1, low: 1, high: 1 };
  return ratio(row.throughput.estimate, baseRow.throughput.estimate, complete);
}

/** The values of a facet that an implementation has. */
export function facetValues(info: ImplementationInfo | null, facet: Facet): string[] {
  if (!info) return [NO_FACT];
  if (facet === "tags") return info.tags.length ? info.tags : [NO_FACT];
  const value = info[facet].trim();
  return [value === "" || value.toLowerCase() === "none" ? NO_FACT : value];
}

/** Each facet's values with how many of the implementations have them; facets with one value only are left out. */
export function facets(
  infos: Iterable<ImplementationInfo>,
): { facet: Facet; values: { value: string; count: number }[] }[] {
  const counts = new Map<Facet, Map<string, number>>(FACETS.map((facet) => [facet, new Map()]));
  for (const info of infos)
    for (const facet of FACETS) {
      const mine = counts.get(facet) as Map<string, number>;
      for (const value of facetValues(info, facet)) mine.set(value, (mine.get(value) ?? 0) + 1);
    }
  return FACETS.map((facet) => ({
    facet,
    values: [...(counts.get(facet) as Map<string, number>)]
      .map(([value, count]) => ({ value, count }))
      .sort((a, b) => a.value.localeCompare(b.value, "en", { sensitivity: "base" })),
  })).filter(({ values }) => values.length > 1);
}

type Filter = Pick<Route, "text" | "facets" | "hidden">;

/** A predicate over implementations. Text: comma-separated words, any of which may occur in name or facts. */
export function matcher(filter: Filter): (name: string, info: ImplementationInfo | null) => boolean {
  const words = filter.text
    .toLowerCase()
    .split(",")
    .map((word) => word.trim())
    .filter(Boolean);
  const hidden = new Set(filter.hidden);
  const wanted = FACETS.filter((facet) => filter.facets[facet].length > 0).map(
    (facet) => [facet, new Set(filter.facets[facet])] as const,
  );
  return (name, info) => {
    if (hidden.has(name)) return false;
    if (!wanted.every(([facet, values]) => facetValues(info, facet).some((value) => values.has(value)))) return false;
    if (words.length === 0) return true;
    const text = [name, info?.display_name, info?.framework, info?.language, info?.platform, ...(info?.tags ?? [])]
      .join(" ")
      .toLowerCase();
    return words.some((word) => text.includes(word));
  };
}

/** Whether a column sorts downwards by nature: the best first. */
export function naturallyDescending(sort: Sort): boolean {
  return sort === "throughput" || sort === "ratio";
}

/** The lines shown: filtered, sorted; unranked ones last; pinned ones first. Ranks are what they were. */
export function shown(all: readonly Line[], route: Route): Line[] {
  const matches = matcher(route);
  const pinned = new Set(route.pinned);
  const kept = all.filter((line) => pinned.has(line.name) || matches(line.name, line.info));
  const descending = route.descending ?? naturallyDescending(route.sort);
  const direction = descending ? -1 : 1;
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
      return known(line.standing?.position);
    case "name":
      return line.name.toLowerCase();
    case "throughput":
      return known(row.throughput?.estimate.median);
    case "ratio":
      return known(line.ratio?.value);
    case "cpu":
      return known(row.cpu_per_request?.estimate.median);
    case "memory":
      return known(row.rss_peak);
    case "first":
      return known(row.first_answer);
    case "errors":
      return known(row.errors);
  }
}

/** The words that every measured line has: said once above the table, rather than in each row. */
export function commonWords(list: readonly Line[]): string[] {
  const measured = list.filter((line) => line.row.throughput);
  const [first, ...rest] = measured;
  if (!first || rest.length === 0) return [];
  return first.row.words.filter((word) => rest.every((line) => line.row.words.includes(word)));
}

/** Where a line stands in a group of ties among its neighbours in the list; null when it is tied with nobody shown. */
export type Tie = { parity: 0 | 1; first: boolean; last: boolean } | null;

/** The tie of each line; only lists in rank order have any. */
export function ties(list: readonly Line[], inRankOrder: boolean): Tie[] {
  const group = (index: number): number | null => {
    const line = list[index];
    return line?.row.ranked && line.standing ? line.standing.tie_group : null;
  };
  let parity: 0 | 1 = 1;
  return list.map((_, index) => {
    const mine = group(index);
    if (!inRankOrder || mine === null) return null;
    const before = group(index - 1) === mine;
    const after = group(index + 1) === mine;
    if (!before && !after) return null;
    if (!before) parity = parity === 0 ? 1 : 0;
    return { parity, first: !before, last: !after };
  });
}
