// Selects a ranking's columns: the selected metric with bar, share and ratio, then the other measured metrics.
import { availableMetrics, type MetricSpec, SPECS } from "../metrics";
import type { Metric, Sort } from "../route";
import type { RankedRow } from "../table";

export interface Column {
  sort: Sort;
  label: string;
  title: string;
  class: string;
}

export interface Columns {
  spec: MetricSpec;
  others: MetricSpec[];
  ranked: boolean; // false if the run's profile produces no ranking
  share: boolean;
  ratio: boolean;
  startup: boolean;
  errors: boolean;
  flags: boolean;
  all: Column[];
}

/** Return the columns that have content. */
export function rankingColumns(
  list: readonly RankedRow[],
  metric: Metric,
  reference: string | null,
  commonFlags: readonly string[],
): Columns {
  const spec = SPECS[metric];
  const rows = list.map((entry) => entry.row);
  const others = availableMetrics(rows).filter((other) => other.always && other.id !== spec.id);
  const ranked = rows.some((row) => row.ranked);
  const share = list.filter((entry) => entry.share !== null).length > 1;
  const ratio = reference !== null && list.some((entry) => entry.ratio !== null);
  const startup = rows.some((row) => row.startup_time !== null);
  const errors = rows.some((row) => row.errors > 0);
  const flags = rows.some((row) => row.reason !== "" || row.flags.some((flag) => !commonFlags.includes(flag)));
  const all: (Column | false)[] = [
    ranked && {
      sort: "rank",
      label: "Rank",
      title: spec.processes ? "Possible ranks (95 %)" : "Order of the medians; differences may be due to chance",
      class: "c-rank",
    },
    { sort: "name", label: "Implementation", title: "Implementation", class: "c-name" },
    {
      sort: spec.id,
      label: share && spec.lowerIsBetter ? `${spec.column} (longer bar is better)` : spec.column,
      title: spec.title,
      class: "c-rate",
    },
    share && {
      sort: "share",
      label: "% of best",
      title: spec.lowerIsBetter ? "Best value divided by this value" : "This value divided by the best value",
      class: "c-share",
    },
    ratio && {
      sort: "ratio",
      label: reference && reference.length <= 14 ? `× ${reference}` : "× baseline",
      title: `${spec.name} as a multiple of ${reference ?? ""}'s${spec.lowerIsBetter ? "; lower is better" : ""}`,
      class: "c-ratio",
    },
    ...others.map((other) => ({
      sort: other.id,
      label: other.column,
      title: other.title,
      class: `c-other c-${other.id}`,
    })),
    startup && {
      sort: "first",
      label: "Startup",
      title: "Time from start to the first valid response",
      class: "c-first",
    },
    errors && {
      sort: "errors",
      label: "Errors",
      title: "Errors in all trials; they do not count as throughput",
      class: "c-errors",
    },
  ];
  return { spec, others, ranked, share, ratio, startup, errors, flags, all: all.filter((column) => column !== false) };
}
