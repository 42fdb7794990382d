// The columns of a ranking: the chosen metric first, with bar, share and ratio; then what else was measured.
import { measured, type MetricSpec, SPECS } from "../metrics";
import type { Metric, Sort } from "../route";
import type { Line } from "../table";

export interface Column {
  sort: Sort;
  label: string;
  title: string;
  class: string;
}

export interface Columns {
  spec: MetricSpec;
  others: MetricSpec[];
  ranked: boolean; // false of a run whose figures rank nothing
  share: boolean;
  ratio: boolean;
  startup: boolean;
  errors: boolean;
  flags: boolean;
  all: Column[];
}

/** The columns that have something to show; empty ones are left out. */
export function columnsOf(
  list: readonly Line[],
  metric: Metric,
  reference: string | null,
  said: readonly string[],
): Columns {
  const spec = SPECS[metric];
  const rows = list.map((line) => line.row);
  const others = measured(rows).filter((other) => other.always && other.id !== spec.id);
  const ranked = rows.some((row) => row.ranked);
  const share = list.filter((line) => line.share !== null).length > 1;
  const ratio = reference !== null && list.some((line) => line.ratio !== null);
  const startup = rows.some((row) => row.startup_time !== null);
  const errors = rows.some((row) => row.errors > 0);
  const flags = rows.some((row) => row.reason !== "" || row.flags.some((word) => !said.includes(word)));
  const all: (Column | false)[] = [
    ranked && {
      sort: "rank",
      label: "Rank",
      title: spec.processes
        ? "Possible ranks (95 %)"
        : "Places of the medians: nothing says which differences are real",
      class: "c-rank",
    },
    { sort: "name", label: "Implementation", title: "Implementation", class: "c-name" },
    {
      sort: spec.id,
      label: share && spec.lowerIsBetter ? `${spec.column} (longer bar: less)` : spec.column,
      title: spec.title,
      class: "c-rate",
    },
    share && {
      sort: "share",
      label: "% of best",
      title: spec.lowerIsBetter ? "The best's figure over this one's" : "This figure over the best's",
      class: "c-share",
    },
    ratio && {
      sort: "ratio",
      label: reference && reference.length <= 14 ? `× ${reference}` : "× reference",
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
      title: "Errors over all trials; none counts as throughput",
      class: "c-errors",
    },
  ];
  return { spec, others, ranked, share, ratio, startup, errors, flags, all: all.filter((column) => column !== false) };
}
