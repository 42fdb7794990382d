// A bar that shows a value as a share of the best value, with a whisker for the interval. For every metric, longer is
// better.
import { isNumber } from "../format";
import type { MetricSpec } from "../metrics";
import type { Figure } from "../table";

interface Props {
  figure: Figure | null;
  spec: Pick<MetricSpec, "lowerIsBetter">;
  best: number | null;
  pinned: boolean;
}

export function Bar({ figure, spec, best, pinned }: Props) {
  if (!figure || !best || !(figure.median > 0)) return <span class="bar" aria-hidden="true" />;
  const share = (value: number): number => {
    const part = spec.lowerIsBetter ? best / value : value / best;
    return Math.min(100, Math.max(0, part * 100 * SCALE));
  };
  const { median, low, high } = figure;
  const ends = isNumber(low) && isNumber(high) && low > 0 && low !== high ? [share(low), share(high)] : null;
  const from = ends ? Math.min(...ends) : 0;
  const to = ends ? Math.max(...ends) : 0;
  return (
    <span class={pinned ? "bar pinned" : "bar"} aria-hidden="true">
      <span class="fill" style={{ width: `${share(median)}%` }} />
      {ends && <span class="whisker" style={{ left: `${from}%`, width: `${Math.max(0.15, to - from)}%` }} />}
    </span>
  );
}

const SCALE = 0.96; // the best value's bar takes this share of the width, which leaves room for the whisker
