// What is shown of a table: load, metric, baseline, order, flags, filters, link and export.
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { ImplementationInfo } from "../documents";
import { useIdle, usePage } from "../hooks";
import { label, type Load, name as loadName } from "../load";
import type { MetricSpec } from "../metrics";
import { BEST, METRICS, SORTS } from "../route";
import type { Columns } from "./columns";
import { CopyLink } from "./copy-link";
import { Filters } from "./filters";

interface Props {
  loads: readonly Load[];
  headline: string; // name of the headline load
  infos: readonly ImplementationInfo[];
  metrics: MetricSpec[]; // that can be chosen
  baselines: readonly string[] | null; // beside the reference and the best; null where a baseline makes no sense
  reference: string | null;
  columns: Columns | null; // to sort by on a narrow page, which has no column heads
  children?: ComponentChildren;
}

export function Toolbar({ loads, headline, infos, metrics, baselines, reference, columns, children }: Props) {
  const { route, go } = usePage();
  return (
    <div class="toolbar" role="group" aria-label="What is shown">
      {metrics.length > 1 && (
        <label>
          <span>Rank by</span>
          <select
            value={route.metric}
            onChange={(event) => {
              const metric = METRICS.find((item) => item === event.currentTarget.value);
              if (metric) go({ metric, named: true, sort: "rank", descending: null });
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
      {baselines && <BaselineChoice baselines={baselines} reference={reference} />}
      {columns && (
        <label class="sort-choice">
          <span>Sort by</span>
          <select
            value={route.sort}
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
      <label class="search">
        <span class="unseen">Filter by words</span>
        <input
          type="search"
          value={route.text}
          placeholder="Filter: java vert, go"
          onInput={(event) => go({ text: event.currentTarget.value }, "replace")}
        />
      </label>
      <Filters infos={infos} />
      {children}
      <CopyLink />
    </div>
  );
}

function BaselineChoice({ baselines, reference }: { baselines: readonly string[]; reference: string | null }) {
  const { route, go } = usePage();
  // The same elements while the names are the same: hundreds of options are then not compared at each key stroke. They
  // are made when the page has drawn what it was opened for; the one chosen is there at once.
  const idle = useIdle();
  const options = useMemo(
    () =>
      baselines
        .filter((name) => name !== reference && (idle || name === route.base))
        .map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        )),
    [baselines, reference, idle, route.base],
  );
  return (
    <label class="baseline">
      <span>Baseline</span>
      <select value={route.base} onChange={(event) => go({ base: event.currentTarget.value })}>
        <option value="">{reference ? `${reference} (reference)` : "none"}</option>
        <option value={BEST}>the best of the table</option>
        {options}
      </select>
    </label>
  );
}
