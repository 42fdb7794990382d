// A panel that filters implementations by facet values, presets and best variants. It is rendered only while open.
import { useMemo } from "preact/hooks";
import type { ImplementationInfo } from "../documents";
import { type FacetValue, facets, foldCase, type Preset, presets } from "../filter";
import { usePage } from "../hooks";
import { FACETS, type Facet, noFacets } from "../route";
import { Menu } from "./menu";

export const FACET_NAMES: Record<Facet, string> = {
  language: "Language",
  platform: "Platform",
  http_server: "HTTP server",
  concurrency: "Concurrency",
  approach: "Approach",
  classification: "Classification",
  database: "Database",
  database_driver: "Database driver",
  orm: "ORM",
  json_library: "JSON library",
  template_engine: "Template engine",
  tags: "Tags",
};

export function Filters({ infos }: { infos: readonly ImplementationInfo[] }) {
  const { route } = usePage();
  const activeCount =
    FACETS.reduce((sum, facet) => sum + route.facets[facet].length, 0) +
    route.hidden.length +
    Number(route.bestVariantsOnly);
  return (
    <Menu label="Filters" badge={activeCount}>
      <Panel infos={infos} activeCount={activeCount} />
    </Menu>
  );
}

function Panel({ infos, activeCount }: { infos: readonly ImplementationInfo[]; activeCount: number }) {
  const { route, go } = usePage();
  const all = useMemo(() => facets(infos), [infos]);
  const availablePresets = useMemo(() => presets(infos), [infos]);
  const hasVariants = useMemo(
    () => new Set(infos.map((info) => foldCase(info.framework))).size < infos.length,
    [infos],
  );
  const choose = (facet: Facet, keys: string[]): void => go({ facets: { ...route.facets, [facet]: keys } });
  const applyPreset = (preset: Preset): void => go({ facets: { ...noFacets(), ...preset.facets } });
  return (
    <div class="filters">
      <div class="filter-acts">
        <button
          type="button"
          disabled={activeCount === 0}
          onClick={() => go({ hidden: [], bestVariantsOnly: false, facets: noFacets() })}
        >
          Reset
        </button>
        {availablePresets.map((item) => (
          <button type="button" key={item.name} onClick={() => applyPreset(item)}>
            {item.name}
          </button>
        ))}
        {hasVariants && (
          <label class="check">
            <input
              type="checkbox"
              checked={route.bestVariantsOnly}
              onChange={(event) => go({ bestVariantsOnly: event.currentTarget.checked })}
            />
            Best variant of each framework
          </label>
        )}
      </div>
      {all.length === 0 && <p>All implementations have the same properties.</p>}
      <div class="facets">
        {all.map(({ facet, values }) => (
          <FacetSelect key={facet} facet={facet} values={values} onChoose={(keys) => choose(facet, keys)} />
        ))}
        {route.hidden.length > 0 && (
          <fieldset>
            <legend>Hidden</legend>
            {route.hidden.map((name) => (
              <label class="check" key={name}>
                <input
                  type="checkbox"
                  checked
                  onChange={() => go({ hidden: route.hidden.filter((other) => other !== name) })}
                />
                <bdi>{name}</bdi>
              </label>
            ))}
          </fieldset>
        )}
      </div>
    </div>
  );
}

interface ChoiceProps {
  facet: Facet;
  values: FacetValue[];
  onChoose: (keys: string[]) => void;
}

/** Checkboxes for the values of a facet. If none is checked, the facet hides no implementation. */
function FacetSelect({ facet, values, onChoose }: ChoiceProps) {
  const { route } = usePage();
  const selected = new Set(route.facets[facet].map(foldCase));
  return (
    <fieldset>
      <legend>{FACET_NAMES[facet]}</legend>
      <p class="all-none">
        <button type="button" class="plain" disabled={selected.size === 0} onClick={() => onChoose([])}>
          any
        </button>
        <button type="button" class="plain" onClick={() => onChoose(values.map(({ key }) => key))}>
          all
        </button>
        <button
          type="button"
          class="plain"
          onClick={() => onChoose(values.map(({ key }) => key).filter((key) => !selected.has(key)))}
        >
          invert
        </button>
      </p>
      {values.map(({ value, key, count }) => (
        <label class="check" key={key}>
          <input
            type="checkbox"
            checked={selected.has(key)}
            onChange={(event) => {
              const others = [...selected].filter((item) => item !== key);
              onChoose(event.currentTarget.checked ? [...others, key] : others);
            }}
          />
          <bdi>{value}</bdi> <span class="quiet">{count}</span>
        </label>
      ))}
    </fieldset>
  );
}
