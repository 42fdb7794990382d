// A latency spectrum: a line of percentiles for each implementation, with the range over processes. The percentile axis
// stretches the tail.
import type { ComponentChildren } from "preact";
import { seconds } from "../format";
import { LineChart } from "./lines";
import type { SeriesStyle } from "./palette";

export interface Spectrum {
  name: string;
  style: SeriesStyle;
  strong?: boolean;
  percentiles: Readonly<Record<string, number>>; // "99.9" -> seconds
  spread?: Readonly<Record<string, readonly unknown[]>>; // percentile -> minimum and maximum over processes, in seconds
}

interface Props {
  title: string;
  note?: ComponentChildren;
  spectra: Spectrum[];
}

export function SpectrumChart({ title, note, spectra }: Props) {
  const series = spectra.map(({ name, style, strong, percentiles, spread }) => ({
    name,
    style,
    strong: strong ?? false,
    points: Object.entries(percentiles)
      .map(([key, value]) => {
        const [low, high] = spread?.[key] ?? [];
        return {
          x: 100 / (100 - Number(key)),
          y: value,
          low: typeof low === "number" ? low : null,
          high: typeof high === "number" ? high : null,
          note: `p${key}`,
        };
      })
      .filter((point) => Number.isFinite(point.x))
      .sort((a, b) => a.x - b.x),
  }));
  return (
    <LineChart
      title={title}
      note={note}
      series={series}
      x={{
        label: "percentile (stretched tail)",
        kind: "log",
        format: (value) => `p${Number((100 - 100 / value).toFixed(3))}`,
        ticks: [2, 4, 10, 20, 100, 1000, 10_000],
      }}
      y={{ label: "latency (log scale)", kind: "log", format: seconds }}
      columns={["implementation", "percentile", "latency_seconds"]}
    />
  );
}
