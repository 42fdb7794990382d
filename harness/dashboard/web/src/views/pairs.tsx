// Head to head: every implementation as a multiple of the reference, with intervals.
import type { RunDocument } from "../documents";
import { ForestPlot } from "../charts/forest";
import { isNumber } from "../format";
import { usePage } from "../hooks";
import { testName } from "../load";
import { SPECS } from "../metrics";
import type { Line } from "../table";

const MOST = 60;

export function Pairs({ list, doc, test }: { list: Line[]; doc: RunDocument; test: string }) {
  const { route } = usePage();
  const spec = SPECS[route.metric];
  const baseline = doc.ranking.reference ?? "the best";
  const noise = doc.ranking.noise_floor;
  const floor = noise && spec.processes ? (spec.id === "cpu" ? noise.cpu_per_request : noise.throughput) : null;
  const effects = list
    .slice(0, MOST)
    .flatMap((line) =>
      line.name !== baseline && line.ratio ? [{ name: line.name, detail: testName(test), ratio: line.ratio }] : [],
    );
  const intervals = effects.some(({ ratio }) => ratio.low !== null);
  return (
    <ForestPlot
      title={`${testName(test)}: ${spec.name} as a multiple of ${baseline}`}
      note={
        <>
          {spec.lowerIsBetter && "Lower is better. "}
          {intervals
            ? `Ratios with their ${Math.round(doc.ranking.confidence * 100)} % intervals. A hollow square has 1 in its interval: the difference may be chance.`
            : "Ratios of single figures: without intervals, nothing says which differences are real."}
          {isNumber(floor) &&
            ` The shaded band is this machine's noise floor (±${(floor * 100).toFixed(1)} %): smaller differences are noise.`}
          {list.length > MOST && ` The first ${MOST} of ${list.length} are drawn: filter to choose others.`}
        </>
      }
      effects={effects}
      left={`${spec.id === "throughput" ? "slower" : "less"} than ${baseline}`}
      right={`${spec.id === "throughput" ? "faster" : "more"} than ${baseline}`}
      floor={floor}
    />
  );
}
