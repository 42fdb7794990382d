// Selects a run's tabs: the test types, and the views that have content.
import type { ScenarioResults, RunDocument, Table } from "../documents";
import { axis, position, testName } from "../load";
import type { View } from "../route";

export const OVERALL = "overall";
const GROUP_PREFIX = `${OVERALL}-`; // prefix of the tab ids of group scores, such as "overall-protocols"
const ORDER = "order";

export interface ViewTab {
  id: View;
  label: string;
}

/** Return whether a tab shows a score instead of a test type. */
export function isScore(tab: string): boolean {
  return tab === OVERALL || tab.startsWith(GROUP_PREFIX);
}

/** Return the group whose score a tab shows, or null if it shows the score of the test types without a group. */
export function scoredGroup(tab: string): string | null {
  return tab.startsWith(GROUP_PREFIX) ? tab.slice(GROUP_PREFIX.length) : null;
}

/** Return the label of a tab. */
export function tabLabel(tab: string): string {
  const group = scoredGroup(tab);
  return group === null ? (tab === OVERALL ? "Overall" : testName(tab)) : `Overall: ${group}`;
}

/** Return a run's tabs: the overall score and the groups' scores, if they exist, and then the test types. */
export function testTabs({ ranking }: RunDocument): string[] {
  const tests = Object.keys(ranking.test_types);
  const wasMeasured = (test: string): boolean =>
    ranking.test_types[test]?.headline.rows.some((row) => row.throughput) ?? false;
  const scored = ranking.overall.some((score) => Object.keys(score.ratios).length > 0);
  const overall = scored || (ranking.reference === null && tests.filter(wasMeasured).length > 1);
  const groups = Object.entries(ranking.groups).filter(([, scores]) => scores.length > 0);
  const scores = [...(overall ? [OVERALL] : []), ...groups.map(([group]) => `${GROUP_PREFIX}${group}`)];
  return [...scores, ...(tests.some(wasMeasured) ? tests : [])];
}

/** Return the views that have content for a test type. */
export function viewTabs(
  doc: RunDocument,
  test: string,
  table: Table | null,
  shown: { latency: boolean; selected: boolean },
): ViewTab[] {
  const groups: ViewTab = { id: "groups", label: "By language" };
  const about: ViewTab = { id: "about", label: "Machine and method" };
  const hasRanks = Object.values(doc.ranking.test_types).some(({ headline }) =>
    headline.rows.some((row) => row.ranked),
  );
  const grouped = hasRanks && doc.run.implementations.length > 2;
  const ranked: ViewTab = { id: "table", label: hasRanks || orderResults(doc, test) ? "Ranking" : "Figures" };
  const selected: ViewTab[] = shown.selected ? [{ id: "selected", label: "Selected rows" }] : [];
  if (isScore(test)) return [ranked, ...(grouped ? [groups] : []), ...selected, about];
  if (orderResults(doc, test)) return [ranked, { id: "latency", label: "Use cases" }, about];
  const loads = doc.run.loads[test] ?? [];
  const parameter = axis(loads);
  const curve = new Set(loads.map((load) => position(load, parameter))).size > 1;
  const rows = table?.rows ?? [];
  const pairs = hasRanks && rows.filter((row) => row.throughput).length > 1;
  const views: (ViewTab | false)[] = [
    ranked,
    grouped && groups,
    curve && { id: "load", label: "Load curve" },
    shown.latency && { id: "latency", label: "Latency" },
    pairs && { id: "pairs", label: "Head to head" },
    pairs && { id: "scatter", label: "Scatter" },
    ...selected,
    about,
  ];
  return views.filter((view) => view !== false);
}

/** Return the results of the order service, which has dedicated views, or null for any other test type. */
export function orderResults({ ranking }: RunDocument, test: string): ScenarioResults | null {
  return test === ORDER ? (ranking.orders ?? null) : null;
}

/** Return whether a test type may have meaningful latencies. Pipelined requests have none. */
export function mayHaveLatency(doc: RunDocument, test: string): boolean {
  const loads = doc.run.loads[test] ?? [];
  return loads.length === 0 || loads.some((load) => load.depth === 1);
}
