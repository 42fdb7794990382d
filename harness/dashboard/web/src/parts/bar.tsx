// A bar with its interval as a whisker, on a scale from zero to the table's largest value.
import type { Estimate } from "../documents";
import { isNumber } from "../format";

export function Bar({ estimate, most, marked }: { estimate: Estimate | null; most: number; marked: boolean }) {
  if (!estimate || !isNumber(estimate.median) || !(most > 0)) return <span class="bar" aria-hidden="true" />;
  const share = (value: number): number => Math.min(100, Math.max(0, (value / most) * 100));
  const { median, low, high } = estimate;
  const whisker = isNumber(low) && isNumber(high);
  return (
    <span class={marked ? "bar marked" : "bar"} aria-hidden="true">
      <span class="fill" style={{ width: `${share(median)}%` }} />
      {whisker && (
        <span
          class="whisker"
          style={{ left: `${share(low)}%`, width: `${Math.max(0.15, share(high) - share(low))}%` }}
        />
      )}
    </span>
  );
}

/** The scale's end: the largest upper limit of the estimates. */
export function largest(estimates: Iterable<Estimate | null | undefined>): number {
  let most = 0;
  for (const estimate of estimates) {
    if (!estimate) continue;
    for (const value of [estimate.median, estimate.high])
      if (isNumber(value) && value < 1e300) most = Math.max(most, value);
  }
  return most;
}
