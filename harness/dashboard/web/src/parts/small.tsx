// A figure with its interval in small print below it.
import { factor, span, times } from "../format";
import type { Ratio } from "../documents";

interface FigureProps {
  value: number | null | undefined;
  low?: number | null | undefined;
  high?: number | null | undefined;
  show: (value: number | null | undefined) => string;
  strong?: boolean;
}

export function SmallPrint({ value, low, high, show, strong }: FigureProps) {
  const interval = span(low, high, show);
  return (
    <span class="figure-pair">
      <span class={strong ? "figure" : "plain-figure"}>{show(value)}</span>
      {interval && <small>{interval}</small>}
    </span>
  );
}

export function RatioPair({ ratio }: { ratio: Ratio | null }) {
  const interval = ratio ? span(ratio.low, ratio.high, factor) : "";
  return (
    <span class="figure-pair">
      <span class="plain-figure">{times(ratio?.value)}</span>
      {interval && <small>{interval}</small>}
    </span>
  );
}
