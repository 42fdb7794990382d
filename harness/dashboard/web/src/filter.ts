// Which implementations are shown: words, facets, presets, hidden ones, the best variant of each framework. Pure.
import type { ImplementationInfo } from "./documents";
import { FACETS, type Facet, noFacets, type Route } from "./route";

/** A blank fact; TechEmpower writes "None" where there is no database or web server. */
export const NO_FACT = "none";

/** The values of a facet that an implementation has, as they are written. */
export function facetValues(info: ImplementationInfo | null, facet: Facet): string[] {
  if (!info) return [NO_FACT];
  const values = (facet === "tags" ? info.tags : [info[facet]]).map((value) => value.trim());
  const known = values.filter((value) => value !== "" && value.toLowerCase() !== NO_FACT);
  return known.length > 0 ? known : [NO_FACT];
}

/** What a value is compared by: C++ and c++ are one. */
export function folded(value: string): string {
  return value.trim().toLowerCase();
}

export interface FacetValue {
  value: string; // the spelling that most have
  key: string; // folded
  count: number;
}

/** Each facet's values with how many of the implementations have them; facets with one value only are left out. */
export function facets(infos: Iterable<ImplementationInfo>): { facet: Facet; values: FacetValue[] }[] {
  const all = [...infos];
  return FACETS.map((facet) => ({ facet, values: valuesOf(all, facet) })).filter(({ values }) => values.length > 1);
}

function valuesOf(infos: readonly ImplementationInfo[], facet: Facet): FacetValue[] {
  const spellings = new Map<string, Map<string, number>>();
  for (const info of infos)
    for (const value of facetValues(info, facet)) {
      const mine = spellings.get(folded(value)) ?? new Map<string, number>();
      mine.set(value, (mine.get(value) ?? 0) + 1);
      spellings.set(folded(value), mine);
    }
  return [...spellings]
    .map(([key, mine]) => {
      const byCount = [...mine].sort(([a, x], [b, y]) => y - x || a.localeCompare(b, "en"));
      return { key, value: byCount[0]?.[0] ?? key, count: byCount.reduce((sum, [, count]) => sum + count, 0) };
    })
    .sort((a, b) => a.key.localeCompare(b.key, "en"));
}

export type Filter = Pick<Route, "text" | "facets" | "hidden">;

/** A predicate over implementations. Text: words must all occur in name or facts; commas separate alternatives. */
export function matcher(filter: Filter): (name: string, info: ImplementationInfo | null) => boolean {
  const alternatives = filter.text
    .toLowerCase()
    .split(",")
    .map((part) => part.split(/\s+/).filter(Boolean))
    .filter((words) => words.length > 0);
  const hidden = new Set(filter.hidden);
  const wanted = FACETS.filter((facet) => filter.facets[facet].length > 0).map(
    (facet) => [facet, new Set(filter.facets[facet].map(folded))] as const,
  );
  return (name, info) => {
    if (hidden.has(name)) return false;
    if (!wanted.every(([facet, values]) => facetValues(info, facet).some((value) => values.has(folded(value)))))
      return false;
    if (alternatives.length === 0) return true;
    const text = textOf(name, info);
    return alternatives.some((words) => words.every((word) => text.includes(word)));
  };
}

const texts = new WeakMap<ImplementationInfo, string>(); // made once, not at each key stroke

function textOf(name: string, info: ImplementationInfo | null): string {
  if (!info) return name.toLowerCase();
  let text = texts.get(info);
  if (text === undefined) {
    const { display_name, framework, language, platform, database, orm, tags } = info;
    text = [name, display_name, framework, language, platform, database, orm, ...tags].join(" ").toLowerCase();
    texts.set(info, text);
  }
  return text;
}

/** Names of the best variant of each framework, of names in order from the best. */
export function bestVariants(names: readonly string[], infos: ReadonlyMap<string, ImplementationInfo>): Set<string> {
  const kept = new Map<string, string>();
  for (const name of names) {
    const framework = folded(infos.get(name)?.framework ?? name);
    if (!kept.has(framework)) kept.set(framework, name);
  }
  return new Set(kept.values());
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

/** The presets that keep some of these implementations and leave out others. */
export function presets(infos: readonly ImplementationInfo[]): Preset[] {
  return PRESETS.filter((preset) => {
    const matches = matcher({ text: "", hidden: [], facets: { ...noFacets(), ...preset.facets } });
    const kept = infos.filter((info) => matches(info.name, info)).length;
    return kept > 0 && kept < infos.length;
  });
}
