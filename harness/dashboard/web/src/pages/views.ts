// The views of a run that have something to show.
import type { OrderResults, RunDocument, Table } from "../documents";
import { axis, position } from "../load";
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
  return [...(overall ? [OVERALL] : []), ...(tests.some(wasMeasured) ? tests : [])];
}

/** The views of a tab; one that would be empty is left out. */
export function viewTabs(doc: RunDocument, test: string, table: Table | null, latency: boolean): ViewTab[] {
  const groups: ViewTab = { id: "groups", label: "By language" };
  const about: ViewTab = { id: "about", label: "Machine and method" };
  const ordered = Object.values(doc.ranking.test_types).some(({ headline }) => headline.rows.some((row) => row.ranked));
  const several = ordered && doc.run.implementations.length > 2;
  const ranked: ViewTab = { id: "table", label: ordered || ordersOf(doc, test) ? "Ranking" : "Figures" };
  if (test === OVERALL) return [ranked, ...(several ? [groups] : []), about];
  if (ordersOf(doc, test)) return [ranked, { id: "latency", label: "Use cases" }, about];
  const loads = doc.run.loads[test] ?? [];
  const along = axis(loads);
  const curve = new Set(loads.map((load) => position(load, along))).size > 1;
  const rows = table?.rows ?? [];
  const pairs = ordered && rows.filter((row) => row.throughput).length > 1;
  const views: (ViewTab | false)[] = [
    ranked,
    several && groups,
    curve && { id: "load", label: "Load curve" },
    latency && { id: "latency", label: "Latency" },
    pairs && { id: "pairs", label: "Head to head" },
    about,
  ];
  return views.filter((view) => view !== false);
}

/** The order service's tables, where this is its tab: its load is given, so that it has no throughput to rank. */
export function ordersOf({ ranking }: RunDocument, test: string): OrderResults | null {
  return test === ORDER ? (ranking.orders ?? null) : null;
}

/** Whether a test type can have latencies: a pipelined one has none that mean anything. */
export function mayHaveLatency(doc: RunDocument, test: string): boolean {
  const loads = doc.run.loads[test] ?? [];
  return loads.length === 0 || loads.some((load) => load.depth === 1);
}
