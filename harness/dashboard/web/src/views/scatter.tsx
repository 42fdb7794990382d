// Two scatter plots, of throughput against CPU per request and against memory. Each point has the colour of the
// implementation's language.
import type { RunDocument } from "../documents";
import { ScatterChart, type ScatterPoint, type ScatterValue } from "../charts/scatter";
import { tick } from "../format";
import { usePage } from "../hooks";
import { testName } from "../load";
import { type MetricSpec, SPECS } from "../metrics";
import { LanguageLegend, languageClass } from "../parts/language";
import type { RankedRow } from "../table";

export function Scatter({ list, doc, test }: { list: RankedRow[]; doc: RunDocument; test: string }) {
  const { route } = usePage();
  const strong = new Set([...route.pinned, ...route.selected, doc.ranking.reference]);
  const charts = [SPECS.cpu, SPECS.memory].map((spec) => ({ spec, points: scatterPoints(list, spec, strong) }));
  return (
    <>
      <LanguageLegend infos={list.flatMap((entry) => entry.info ?? [])} />
      <div class="two">
        {charts.map(({ spec, points }) => (
          <ScatterChart
            key={spec.id}
            title={`${testName(test)}: throughput against ${spec.name}`}
            note="Best is top left. Bars are intervals. Hover over a point to see its name."
            points={points}
            x={{
              label: spec.id === "cpu" ? "CPU per request, µs" : spec.name,
              format: (value) => [spec.figure(value), spec.id === "cpu" ? "µs" : ""].filter(Boolean).join(" "),
              tick: spec.figure,
              unit: spec.tickUnit,
            }}
            y={{ label: "requests/s", format: SPECS.throughput.figure, tick }}
            columns={[spec.id === "cpu" ? "cpu_seconds_per_request" : "rss_peak_bytes", "requests_per_second"]}
          />
        ))}
      </div>
    </>
  );
}

function scatterPoints(
  list: readonly RankedRow[],
  spec: MetricSpec,
  strong: ReadonlySet<string | null>,
): ScatterPoint[] {
  return list.flatMap((entry) => {
    const [x, y] = [scatterValue(entry, spec), scatterValue(entry, SPECS.throughput)];
    const point = { name: entry.name, colorClass: languageClass(entry.info), strong: strong.has(entry.name) };
    return x && y ? [{ ...point, x, y }] : [];
  });
}

function scatterValue({ row }: RankedRow, spec: MetricSpec): ScatterValue | null {
  const value = spec.value(row);
  const estimate = spec.standing(row)?.estimate;
  return value === null || value <= 0 ? null : { value, low: estimate?.low ?? null, high: estimate?.high ?? null };
}
