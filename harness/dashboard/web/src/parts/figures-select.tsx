// A menu that switches the overall table between ratios to the baseline and absolute values.
import { usePage } from "../hooks";
import type { MetricSpec } from "../metrics";

export function FiguresSelect({ spec }: { spec: MetricSpec }) {
  const { route, go } = usePage();
  return (
    <label class="figures-choice">
      <span>Figures</span>
      <select
        value={route.absolute ? "absolute" : "ratio"}
        onChange={(event) => go({ absolute: event.currentTarget.value === "absolute" })}
      >
        <option value="ratio">ratios</option>
        <option value="absolute">{[spec.name, spec.unit && `(${spec.unit})`].filter(Boolean).join(" ")}</option>
      </select>
    </label>
  );
}
