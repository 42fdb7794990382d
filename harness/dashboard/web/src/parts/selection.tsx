// Controls that select rows for comparison: a checkbox in each row, and a bar with a link to the comparison.
import { usePage } from "../hooks";

export function SelectRow({ name }: { name: string }) {
  const { route, go } = usePage();
  return (
    <input
      type="checkbox"
      class="select-row"
      aria-label={`Select ${name} for comparison`}
      title="Select for comparison"
      checked={route.selected.includes(name)}
      onChange={(event) => {
        const others = route.selected.filter((other) => other !== name);
        go({ selected: event.currentTarget.checked ? [...others, name] : others });
      }}
    />
  );
}

export function SelectionBar() {
  const { route, go } = usePage();
  const { selected } = route;
  if (selected.length === 0) return null;
  return (
    <div class="selection-bar" role="group" aria-label="Selected rows">
      <span>
        <bdi>{selected.join(", ")}</bdi>
      </span>
      <button type="button" disabled={selected.length < 2} onClick={() => go({ view: "selected" })}>
        {selected.length < 2 ? "Select another row to compare" : `Compare ${selected.length} rows`}
      </button>
      <button type="button" class="plain" onClick={() => go({ selected: [], view: "table" })}>
        Clear
      </button>
    </div>
  );
}
