// The views of a run that have something to show.
import type { Orders, RunDocument, Table } from "../documents";
import { axis, position } from "../level";
import { measured } from "../metrics";
import type { View } from "../route";

export const OVERALL = "overall";
const ORDER = "order";

export interface ViewTab {
  id: View;
  label: string;
}

/** The tabs of a run: the overall score first, where two test types or more can be scored. */
export function testTabs({ ranking }: RunDocument): string[] {
  const tests = Object.keys(ranking.test_types);
  const wasMeasured = (test: string): boolean =>
    ranking.test_types[test]?.headline.rows.some((row) => row.throughput) ?? false;
  const scored = ranking.overall.some((score) => Object.keys(score.ratios).length > 0);
  const overall = scored || (ranking.reference === null && tests.filter(wasMeasured).length > 1);
  const shown = tests.some(wasMeasured) ? tests : []; // looks no further than it must: a table's rows are made when asked for
  return [...(overall ? [OVERALL] : []), ...shown];
}

/** The views of a tab; one that would be empty is left out. */
export function viewTabs(doc: RunDocument, test: string, table: Table | null, latency: boolean): ViewTab[] {
  const ranked: ViewTab = { id: "table", label: "Ranking" };
  const groups: ViewTab = { id: "groups", label: "By language" };
  const about: ViewTab = { id: "about", label: "Machine and method" };
  const several = doc.run.implementations.length > 2;
  if (test === OVERALL) return [ranked, ...(several ? [groups] : []), about];
  if (ordersOf(doc, test)) return [ranked, { id: "latency", label: "Use cases" }, about];
  const levels = doc.run.levels[test] ?? [];
  const along = axis(levels);
  const curve = new Set(levels.map((level) => position(level, along))).size > 1;
  const rows = table?.rows ?? [];
  const costs = measured(rows).filter((spec) => spec.id !== "throughput");
  const pairs = rows.filter((row) => row.throughput).length > 1;
  const views: (ViewTab | false)[] = [
    ranked,
    several && groups,
    curve && { id: "load", label: "Load curve" },
    latency && { id: "latency", label: "Latency" },
    costs.length > 0 && { id: "efficiency", label: "Efficiency" },
    pairs && { id: "pairs", label: "Head to head" },
    about,
  ];
  return views.filter((view) => view !== false);
}

/** The order service's tables, where this is its tab: its load is given, so that it has no throughput to rank. */
export function ordersOf({ ranking }: RunDocument, test: string): Orders | null {
  return test === ORDER ? (ranking.orders ?? null) : null;
}

/** Whether a test type can have latencies: a pipelined one has none that mean anything. */
export function mayHaveLatency(doc: RunDocument, test: string): boolean {
  const levels = doc.run.levels[test] ?? [];
  return levels.length === 0 || levels.some((level) => level.pipeline === 1);
}
