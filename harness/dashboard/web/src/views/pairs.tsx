// The view "Head to head": each implementation's ratio to the baseline, with intervals.
import type { RunDocument } from "../documents";
import { ForestPlot } from "../charts/forest";
import { isNumber } from "../format";
import { usePage } from "../hooks";
import { testName } from "../load";
import { SPECS } from "../metrics";
import type { RankedRow } from "../table";

const MAX_EFFECTS = 60;

export function Pairs({ list, doc, test }: { list: RankedRow[]; doc: RunDocument; test: string }) {
  const { route } = usePage();
  const spec = SPECS[route.metric];
  const baseline = doc.ranking.reference ?? "the best";
  const noise = doc.ranking.noise_floor;
  const floor = noise && spec.processes ? (spec.id === "cpu" ? noise.cpu_per_request : noise.throughput) : null;
  const effects = list
    .slice(0, MAX_EFFECTS)
    .flatMap((entry) =>
      entry.name !== baseline && entry.ratio ? [{ name: entry.name, detail: testName(test), ratio: entry.ratio }] : [],
    );
  const intervals = effects.some(({ ratio }) => ratio.low !== null);
  return (
    <ForestPlot
      title={`${testName(test)}: ${spec.name} as a multiple of ${baseline}`}
      note={
        <>
          {spec.lowerIsBetter && "Lower is better. "}
          {intervals
            ? `Ratios with ${Math.round(doc.ranking.confidence * 100)} % intervals. The interval of a hollow square contains 1, so the difference may be due to chance.`
            : "Each implementation was measured once, so there are no intervals, and differences may be due to chance."}
          {isNumber(floor) &&
            ` The shaded band is this machine's noise floor (±${(floor * 100).toFixed(1)} %): smaller differences are noise.`}
          {list.length > MAX_EFFECTS &&
            ` The first ${MAX_EFFECTS} of ${list.length} are shown; filter to select others.`}
        </>
      }
      effects={effects}
      left={`${spec.id === "throughput" ? "slower" : "less"} than ${baseline}`}
      right={`${spec.id === "throughput" ? "faster" : "more"} than ${baseline}`}
      floor={floor}
    />
  );
}
