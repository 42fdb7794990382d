// Pure functions that filter implementations by text, facets and presets, and select each framework's best variant.
import type { ImplementationInfo } from "./documents";
import { FACETS, type Facet, noFacets, type Route } from "./route";

/** Key for a missing value. TechEmpower writes "None" if there is no database or web server. */
export const NO_FACT = "none";

/** Return an implementation's values for a facet, in their original spelling. */
export function facetValues(info: ImplementationInfo | null, facet: Facet): string[] {
  if (!info) return [NO_FACT];
  const values = (facet === "tags" ? info.tags : [info[facet]]).map((value) => value.trim());
  const nonEmpty = values.filter((value) => value !== "" && value.toLowerCase() !== NO_FACT);
  return nonEmpty.length > 0 ? nonEmpty : [NO_FACT];
}

/** Normalize a value for case-insensitive comparison: C++ equals c++. */
export function foldCase(value: string): string {
  return value.trim().toLowerCase();
}

export interface FacetValue {
  value: string; // most frequent spelling
  key: string; // case-folded
  count: number;
}

/** Return each facet's values and the number of implementations per value. Facets with a single value are omitted. */
export function facets(infos: Iterable<ImplementationInfo>): { facet: Facet; values: FacetValue[] }[] {
  const all = [...infos];
  return FACETS.map((facet) => ({ facet, values: valuesOf(all, facet) })).filter(({ values }) => values.length > 1);
}

function valuesOf(infos: readonly ImplementationInfo[], facet: Facet): FacetValue[] {
  const spellings = new Map<string, Map<string, number>>();
  for (const info of infos)
    for (const value of facetValues(info, facet)) {
      const counts = spellings.get(foldCase(value)) ?? new Map<string, number>();
      counts.set(value, (counts.get(value) ?? 0) + 1);
      spellings.set(foldCase(value), counts);
    }
  return [...spellings]
    .map(([key, counts]) => {
      const byCount = [...counts].sort(([a, x], [b, y]) => y - x || a.localeCompare(b, "en"));
      return { key, value: byCount[0]?.[0] ?? key, count: byCount.reduce((sum, [, count]) => sum + count, 0) };
    })
    .sort((a, b) => a.key.localeCompare(b.key, "en"));
}

export type Filter = Pick<Route, "text" | "facets" | "hidden">;

/**
 * Return a predicate for implementations that are not hidden and match the facets and the text. Name and metadata must
 * contain all words of the text. Commas separate alternatives.
 */
export function matcher(filter: Filter): (name: string, info: ImplementationInfo | null) => boolean {
  const alternatives = filter.text
    .toLowerCase()
    .split(",")
    .map((part) => part.split(/\s+/).filter(Boolean))
    .filter((words) => words.length > 0);
  const hidden = new Set(filter.hidden);
  const requested = FACETS.filter((facet) => filter.facets[facet].length > 0).map(
    (facet) => [facet, new Set(filter.facets[facet].map(foldCase))] as const,
  );
  return (name, info) => {
    if (hidden.has(name)) return false;
    if (!requested.every(([facet, values]) => facetValues(info, facet).some((value) => values.has(foldCase(value)))))
      return false;
    if (alternatives.length === 0) return true;
    const text = searchText(name, info);
    return alternatives.some((words) => words.every((word) => text.includes(word)));
  };
}

const texts = new WeakMap<ImplementationInfo, string>(); // a cache, because the filter runs on every keystroke

function searchText(name: string, info: ImplementationInfo | null): string {
  if (!info) return name.toLowerCase();
  let text = texts.get(info);
  if (text === undefined) {
    const values = FACETS.flatMap((facet) => info[facet]);
    text = [name, info.display_name, info.framework, ...values].join(" ").toLowerCase();
    texts.set(info, text);
  }
  return text;
}

/** Return the name of each framework's best implementation. `names` are sorted, best first. */
export function bestVariants(names: readonly string[], infos: ReadonlyMap<string, ImplementationInfo>): Set<string> {
  const bestByFramework = new Map<string, string>();
  for (const name of names) {
    const framework = foldCase(infos.get(name)?.framework ?? name);
    if (!bestByFramework.has(framework)) bestByFramework.set(framework, name);
  }
  return new Set(bestByFramework.values());
}

export interface Preset {
  name: string;
  facets: Partial<Record<Facet, string[]>>;
}

const PRESETS: readonly Preset[] = [
  { name: "Realistic approach", facets: { approach: ["realistic"] } },
  { name: "Full-stack frameworks", facets: { classification: ["fullstack"] } },
  { name: "Micro frameworks", facets: { classification: ["micro"] } },
  { name: "Platforms", facets: { classification: ["platform"] } },
  { name: "Full ORM", facets: { orm: ["full"] } },
  { name: "Raw SQL", facets: { orm: ["raw"] } },
  { name: "JVM languages", facets: { language: ["java", "kotlin", "scala", "groovy", "clojure"] } },
];

/** Return the presets that match some but not all of these implementations. */
export function presets(infos: readonly ImplementationInfo[]): Preset[] {
  return PRESETS.filter((preset) => {
    const matches = matcher({ text: "", hidden: [], facets: { ...noFacets(), ...preset.facets } });
    const kept = infos.filter((info) => matches(info.name, info)).length;
    return kept > 0 && kept < infos.length;
  });
}
