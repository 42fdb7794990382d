// The choice of facets, presets and variants; made only while its panel is open.
import { useMemo } from "preact/hooks";
import type { ImplementationInfo } from "../documents";
import { type FacetValue, facets, folded, type Preset, presets } from "../filter";
import { usePage } from "../hooks";
import { FACETS, type Facet, noFacets } from "../route";
import { Menu } from "./menu";

export const FACET_NAMES: Record<Facet, string> = {
  language: "Language",
  platform: "Platform",
  approach: "Approach",
  classification: "Classification",
  database: "Database",
  orm: "ORM",
  tags: "Tags",
};

export function Filters({ infos }: { infos: readonly ImplementationInfo[] }) {
  const { route } = usePage();
  const set =
    FACETS.reduce((sum, facet) => sum + route.facets[facet].length, 0) + route.hidden.length + Number(route.variants);
  return (
    <Menu label="Filters" badge={set} align="right">
      <Panel infos={infos} set={set} />
    </Menu>
  );
}

function Panel({ infos, set }: { infos: readonly ImplementationInfo[]; set: number }) {
  const { route, go } = usePage();
  const all = useMemo(() => facets(infos), [infos]);
  const offered = useMemo(() => presets(infos), [infos]);
  const variants = useMemo(() => new Set(infos.map((info) => folded(info.framework))).size < infos.length, [infos]);
  const choose = (facet: Facet, keys: string[]): void => go({ facets: { ...route.facets, [facet]: keys } });
  const preset = (chosen: Preset): void => go({ facets: { ...noFacets(), ...chosen.facets } });
  return (
    <div class="filters">
      <div class="filter-acts">
        <button
          type="button"
          disabled={set === 0}
          onClick={() => go({ hidden: [], variants: false, facets: noFacets() })}
        >
          Reset
        </button>
        {offered.map((one) => (
          <button type="button" key={one.name} onClick={() => preset(one)}>
            {one.name}
          </button>
        ))}
        {variants && (
          <label class="check">
            <input
              type="checkbox"
              checked={route.variants}
              onChange={(event) => go({ variants: event.currentTarget.checked })}
            />
            Best variant of each framework
          </label>
        )}
      </div>
      {all.length === 0 && <p>All implementations have the same facts.</p>}
      <div class="facets">
        {all.map(({ facet, values }) => (
          <FacetChoice key={facet} facet={facet} values={values} onChoose={(keys) => choose(facet, keys)} />
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

/** One facet. Nothing chosen means everything; "none" of a facet is every box empty but the first one ticked next. */
function FacetChoice({ facet, values, onChoose }: ChoiceProps) {
  const { route } = usePage();
  const chosen = new Set(route.facets[facet].map(folded));
  return (
    <fieldset>
      <legend>{FACET_NAMES[facet]}</legend>
      <p class="all-none">
        <button type="button" class="plain" disabled={chosen.size === 0} onClick={() => onChoose([])}>
          any
        </button>
        <button type="button" class="plain" onClick={() => onChoose(values.map(({ key }) => key))}>
          all
        </button>
        <button
          type="button"
          class="plain"
          onClick={() => onChoose(values.map(({ key }) => key).filter((key) => !chosen.has(key)))}
        >
          invert
        </button>
      </p>
      {values.map(({ value, key, count }) => (
        <label class="check" key={key}>
          <input
            type="checkbox"
            checked={chosen.has(key)}
            onChange={(event) => {
              const others = [...chosen].filter((item) => item !== key);
              onChoose(event.currentTarget.checked ? [...others, key] : others);
            }}
          />
          <bdi>{value}</bdi> <span class="quiet">{count}</span>
        </label>
      ))}
    </fieldset>
  );
}
