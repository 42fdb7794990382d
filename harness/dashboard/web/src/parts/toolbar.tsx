// The toolbar of a table: load, metric, order, filters and export.
import type { ComponentChildren } from "preact";
import type { ImplementationInfo } from "../documents";
import { usePage } from "../hooks";
import { label, type Load, name as loadName } from "../load";
import type { MetricSpec } from "../metrics";
import { METRICS, SORTS } from "../route";
import { BaselineSelect } from "./baseline";
import type { Columns } from "./columns";
import { Filters } from "./filters";
import { SearchField } from "./search-field";

interface Props {
  loads: readonly Load[];
  headline: string; // label of the headline load in the menu of loads
  infos: readonly ImplementationInfo[];
  metrics: MetricSpec[]; // metrics that the user can select
  columns: Columns | null; // for sorting on narrow pages, which have no column headers
  usualBaseline: string | null;
  children?: ComponentChildren;
}

export function Toolbar({ loads, headline, infos, metrics, columns, usualBaseline, children }: Props) {
  const { route, go } = usePage();
  return (
    <div class="toolbar" role="group" aria-label="View options">
      {metrics.length > 1 && (
        <label>
          <span>{columns && !columns.ranked ? "Metric" : "Rank by"}</span>
          <select
            value={route.metric}
            onChange={(event) => {
              const metric = METRICS.find((item) => item === event.currentTarget.value);
              if (metric) go({ metric, metricChosen: true, sort: "rank", descending: null });
            }}
          >
            {metrics.map((spec) => (
              <option key={spec.id} value={spec.id}>
                {spec.name}
              </option>
            ))}
          </select>
        </label>
      )}
      {loads.length > 1 && (
        <label>
          <span>Load</span>
          <select value={route.load} onChange={(event) => go({ load: event.currentTarget.value })}>
            <option value="">{headline}</option>
            {loads.map((load) => (
              <option key={label(load)} value={label(load)}>
                {loadName(load)}
              </option>
            ))}
          </select>
        </label>
      )}
      {columns && (
        <label class="sort-choice">
          <span>Sort by</span>
          <select
            value={columns.all.some((column) => column.sort === route.sort) ? route.sort : columns.all[0]?.sort}
            onChange={(event) => {
              const sort = SORTS.find((item) => item === event.currentTarget.value);
              if (sort) go({ sort, descending: null });
            }}
          >
            {columns.all.map((column) => (
              <option key={column.sort} value={column.sort}>
                sort by {column.label.toLowerCase()}
              </option>
            ))}
          </select>
        </label>
      )}
      <BaselineSelect infos={infos} usual={usualBaseline} />
      <SearchField value={route.text} placeholder="Filter: java vert, go" onInput={(text) => go({ text }, "replace")} />
      <Filters infos={infos} />
      {children}
    </div>
  );
}
