// What is shown of a table: level, metric, baseline, filters and export.
import { useMemo } from "preact/hooks";
import type { ImplementationInfo, Level } from "../documents";
import { usePage } from "../hooks";
import { label, name as levelName } from "../level";
import { FACETS, type Facet, type Metric, type Sort } from "../route";
import { facets } from "../table";
import { Menu } from "./basics";
import { columns } from "./ranking-table";

const FACET_NAMES: Record<Facet, string> = {
  language: "Language",
  platform: "Platform",
  database: "Database",
  orm: "ORM",
  classification: "Classification",
  tags: "Tags",
};

interface Props {
  levels: readonly Level[];
  headline: string; // name of the headline level
  infos: readonly ImplementationInfo[];
  baselines: readonly string[];
  reference: string | null;
  overall: boolean;
  hasCpu: boolean;
  sortable: boolean; // a narrow page has no column heads to sort by
  children?: preact.ComponentChildren;
}

export function Toolbar({ levels, headline, infos, baselines, reference, overall, hasCpu, sortable, children }: Props) {
  const { route, go } = usePage();
  // The same elements while the names are the same: hundreds of options are then not compared at each key stroke.
  const options = useMemo(
    () =>
      baselines
        .filter((name) => name !== reference)
        .map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        )),
    [baselines, reference],
  );
  const set = FACETS.reduce((sum, facet) => sum + route.facets[facet].length, 0) + route.hidden.length;
  return (
    <div class="toolbar" role="group" aria-label="What is shown">
      {!overall && levels.length > 1 && (
        <label>
          <span>Level</span>
          <select value={route.level} onChange={(event) => go({ level: event.currentTarget.value })}>
            <option value="">{headline}</option>
            {levels.map((level) => (
              <option key={label(level)} value={label(level)}>
                {levelName(level)}
              </option>
            ))}
          </select>
        </label>
      )}
      {hasCpu && (
        <label>
          <span>Rank by</span>
          <select value={route.metric} onChange={(event) => go({ metric: event.currentTarget.value as Metric })}>
            <option value="throughput">throughput</option>
            <option value="cpu">CPU per request</option>
          </select>
        </label>
      )}
      {!overall && (
        <label>
          <span>Baseline</span>
          <select value={route.base} onChange={(event) => go({ base: event.currentTarget.value })}>
            <option value="">{reference ? `${reference} (reference)` : "none"}</option>
            {options}
          </select>
        </label>
      )}
      {!overall && sortable && (
        <label class="sort-choice">
          <span>Sort by</span>
          <select
            value={route.sort}
            onChange={(event) => go({ sort: event.currentTarget.value as Sort, descending: null })}
          >
            {columns(route.metric, route.base || reference || "").map((column) => (
              <option key={column.sort} value={column.sort}>
                sort by {column.label.toLowerCase()}
              </option>
            ))}
          </select>
        </label>
      )}
      <label class="search">
        <span>Filter</span>
        <input
          type="search"
          value={route.text}
          placeholder="name, language, …"
          onInput={(event) => go({ text: event.currentTarget.value }, "replace")}
        />
      </label>
      <Menu label="Filters" badge={set}>
        <Facets infos={infos} set={set} />
      </Menu>
      {children}
    </div>
  );
}

/** The choice of facets; made only while its panel is open. */
function Facets({ infos, set }: { infos: readonly ImplementationInfo[]; set: number }) {
  const { route, go } = usePage();
  const all = useMemo(() => facets(infos), [infos]);
  return (
    <div class="facets">
      {all.map(({ facet, values }) => (
        <fieldset key={facet}>
          <legend>{FACET_NAMES[facet]}</legend>
          {values.map(({ value, count }) => (
            <label key={value}>
              <input
                type="checkbox"
                checked={route.facets[facet].includes(value)}
                onChange={(event) => {
                  const others = route.facets[facet].filter((item) => item !== value);
                  go({
                    facets: { ...route.facets, [facet]: event.currentTarget.checked ? [...others, value] : others },
                  });
                }}
              />
              <bdi>{value}</bdi> <span class="quiet">{count}</span>
            </label>
          ))}
        </fieldset>
      ))}
      {all.length === 0 && <p>All implementations have the same facts.</p>}
      {route.hidden.length > 0 && (
        <fieldset>
          <legend>Hidden</legend>
          {route.hidden.map((name) => (
            <label key={name}>
              <input
                type="checkbox"
                checked
                onChange={() => go({ hidden: route.hidden.filter((other) => other !== name) })}
              />{" "}
              <bdi>{name}</bdi>
            </label>
          ))}
        </fieldset>
      )}
      {set > 0 && (
        <button
          type="button"
          onClick={() =>
            go({
              hidden: [],
              facets: { language: [], platform: [], database: [], orm: [], classification: [], tags: [] },
            })
          }
        >
          Show everything
        </button>
      )}
    </div>
  );
}
