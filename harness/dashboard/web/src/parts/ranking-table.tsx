// The ranking table: rank intervals, bars with whiskers, intervals in small print, tie groups shaded, sortable.
import { usePage } from "../hooks";
import { bestValue } from "../metrics";
import type { Sort } from "../route";
import { type Line, naturallyDescending, ties } from "../table";
import type { Columns } from "./columns";
import { useGrowing } from "./more";
import { RankingRow } from "./ranking-row";

interface Props {
  subject: string; // names what is listed: another subject begins at its top again
  list: Line[];
  all: Line[];
  columns: Columns;
  caption: string;
  testType: string;
  loadsDiffer: boolean;
  said: string[]; // words that hold for every row and stand above the table
}

export function RankingTable({ subject, list, all, columns, caption, ...more }: Props) {
  const { route } = usePage();
  const [limit, end] = useGrowing(subject, list.length);
  const best = bestValue(
    columns.spec,
    all.map((line) => line.row),
  );
  const ascendingRank = route.sort === "rank" && route.descending !== true;
  const tied = ties(list, ascendingRank && route.pinned.length === 0);
  return (
    <div class="table-frame ranking-frame">
      <table class="ranking" role="table" aria-rowcount={list.length + 1}>
        <caption class="unseen">{caption}</caption>
        <Head columns={columns} />
        <tbody role="rowgroup">
          {list.slice(0, limit).map((line, index) => (
            // By place, not by name: filtering then changes what stands in the rows, which is cheaper than new rows.
            <RankingRow
              key={index}
              line={line}
              index={index}
              tie={tied[index] ?? null}
              best={best}
              columns={columns}
              testType={more.testType}
              showLoad={more.loadsDiffer}
              said={more.said}
              pinned={route.pinned.includes(line.name)}
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
  const descending = route.descending ?? naturallyDescending(route.sort);
  const sortBy = (sort: Sort): void => {
    const natural = naturallyDescending(sort);
    const now = route.descending ?? naturallyDescending(route.sort);
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
          <th role="columnheader" scope="col" class="c-words">
            Notes
          </th>
        )}
        <th role="columnheader" scope="col" class="c-acts">
          <span class="unseen">Actions</span>
        </th>
      </tr>
    </thead>
  );
}
