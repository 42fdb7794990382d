// A value with its interval below it in small print.
import { factor, span, times } from "../format";
import type { Ratio } from "../documents";

interface FigureProps {
  value: number | null | undefined;
  low?: number | null | undefined;
  high?: number | null | undefined;
  show: (value: number | null | undefined) => string;
  bound?: (value: number) => string; // formats the interval's bounds; default: `show`
  strong?: boolean;
}

export function FigureWithInterval({ value, low, high, show, bound = show, strong }: FigureProps) {
  const interval = span(low, high, bound);
  return (
    <span class="figure-pair">
      <span class={strong ? "figure" : "plain-figure"}>{show(value)}</span>
      {interval && <small>{interval}</small>}
    </span>
  );
}

export function RatioFigure({ ratio }: { ratio: Ratio | null }) {
  return <FigureWithInterval value={ratio?.value} low={ratio?.low} high={ratio?.high} show={times} bound={factor} />;
}
