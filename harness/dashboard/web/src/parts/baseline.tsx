// Controls that select the baseline, to which all ratios refer: a menu in the toolbar, and clicks on rows.
import { useMemo } from "preact/hooks";
import type { ImplementationInfo } from "../documents";
import { usePage } from "../hooks";

/** The baseline menu in the toolbar. `usual` is the run's baseline, or null if ratios refer to the best. */
export function BaselineSelect({ infos, usual }: { infos: readonly ImplementationInfo[]; usual: string | null }) {
  const { route, go } = usePage();
  const options = useMemo(
    () =>
      infos
        .filter(({ name }) => name !== usual)
        .map(({ name }) => (
          <option key={name} value={name}>
            {name}
          </option>
        )),
    [infos, usual],
  );
  return (
    <label class="baseline-choice" title="The implementation to which ratios refer. You can also click a row.">
      <span>Baseline</span>
      <select value={route.baseline} onChange={(event) => go({ baseline: event.currentTarget.value })}>
        <option value="">{usual ?? "the best"}</option>
        {options}
      </select>
    </label>
  );
}

/** Return a click handler that makes a row the baseline. A second click restores the run's baseline. */
export function useBaselineRow(name: string, selectable: boolean) {
  const { route, go } = usePage();
  if (!selectable) return {};
  return {
    onClick: (event: MouseEvent): void => {
      const onControl = event.target instanceof Element && event.target.closest("a, button, input, .tip, .row-actions");
      if (onControl || getSelection()?.isCollapsed === false) return;
      go({ baseline: route.baseline === name ? "" : name });
    },
  };
}
