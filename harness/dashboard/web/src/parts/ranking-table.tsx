// The sortable ranking table: rank ranges, bars with whiskers, intervals and shaded tie groups.
import { usePage } from "../hooks";
import { bestValue } from "../metrics";
import type { Sort } from "../route";
import { type RankedRow, descendingByDefault, rowTies } from "../table";
import type { Columns } from "./columns";
import { useIncrementalRows } from "./incremental-rows";
import { RankingRow } from "./ranking-row";

interface Props {
  subject: string; // identifies the list; when it changes, drawing starts again with the first rows
  list: RankedRow[];
  all: RankedRow[];
  columns: Columns;
  caption: string;
  testType: string;
  loadsDiffer: boolean;
  commonFlags: string[]; // flags shown above the table instead of in the rows
  baseline: string | null;
}

export function RankingTable({ subject, list, all, columns, caption, ...more }: Props) {
  const { route } = usePage();
  const [limit, end] = useIncrementalRows(subject, list.length);
  const best = bestValue(
    columns.spec,
    all.map((entry) => entry.row),
  );
  const ascendingRank = route.sort === "rank" && route.descending !== true;
  const tied = rowTies(list, ascendingRank && route.pinned.length === 0);
  return (
    <div class="table-frame ranking-frame">
      <table class="ranking" role="table" aria-rowcount={list.length + 1}>
        <caption class="visually-hidden">{caption}</caption>
        <Head columns={columns} />
        <tbody role="rowgroup">
          {list.slice(0, limit).map((entry, index) => (
            // Use the index as the key: after filtering, updating existing rows is cheaper than creating new rows.
            <RankingRow
              key={index}
              entry={entry}
              index={index}
              tie={tied[index] ?? null}
              best={best}
              columns={columns}
              testType={more.testType}
              showLoad={more.loadsDiffer}
              commonFlags={more.commonFlags}
              pinned={route.pinned.includes(entry.name)}
              isBaseline={entry.name === more.baseline}
            />
          ))}
        </tbody>
      </table>
      {end}
    </div>
  );
}

function Head({ columns }: { columns: Columns }) {
  const { route, go } = usePage();
  const descending = route.descending ?? descendingByDefault(route.sort);
  const sortBy = (sort: Sort): void => {
    const natural = descendingByDefault(sort);
    const now = route.descending ?? descendingByDefault(route.sort);
    go(route.sort === sort ? { descending: now === natural ? !natural : null } : { sort, descending: null });
  };
  return (
    <thead role="rowgroup">
      <tr role="row">
        {columns.all.map((column) => (
          <th
            key={column.sort}
            role="columnheader"
            scope="col"
            class={column.class}
            aria-sort={route.sort === column.sort ? (descending ? "descending" : "ascending") : undefined}
          >
            <button type="button" class="sort" title={column.title} onClick={() => sortBy(column.sort)}>
              {column.label}
            </button>
          </th>
        ))}
        {columns.flags && (
          <th role="columnheader" scope="col" class="c-flags">
            Notes
          </th>
        )}
        <th role="columnheader" scope="col" class="c-acts">
          <span class="visually-hidden">Actions</span>
        </th>
      </tr>
    </thead>
  );
}
