// Throughput against what it costs: CPU per request, and peak memory.
import { type Dot, type Extent, ScatterChart } from "../charts/scatter";
import { bytes, isNumber, rate, significant } from "../format";
import { usePage } from "../hooks";
import { testName } from "../load";
import type { Line } from "../table";
import type { Looks } from "./looks";

export function Efficiency({ list, looks, test }: { list: Line[]; looks: Looks; test: string }) {
  const { route } = usePage();
  const dots = (cost: (line: Line) => Extent | null): Dot[] =>
    list.flatMap((line) => {
      const x = cost(line);
      const y = line.row.throughput?.estimate;
      return x && y && isNumber(x.value)
        ? [
            {
              name: line.name,
              x,
              y: { value: y.median, low: y.low, high: y.high },
              look: looks(line.name),
              marked: route.marked.includes(line.name),
            },
          ]
        : [];
    });
  const cpu = dots((line) => {
    const estimate = line.row.cpu_per_request?.estimate;
    return estimate ? { value: estimate.median * 1e6, low: micro(estimate.low), high: micro(estimate.high) } : null;
  });
  const memory = dots((line) =>
    isNumber(line.row.rss_peak) ? { value: line.row.rss_peak / 2 ** 20, low: null, high: null } : null,
  );
  const y = { label: "requests/s", format: rate };
  return (
    <div class="two">
      {cpu.length > 0 && (
        <ScatterChart
          title={`${testName(test)}: throughput against CPU per request`}
          note="Up and to the left is better: more answers, each for less CPU time. Bars are 95 % intervals."
          dots={cpu}
          x={{ label: "CPU µs per request", format: (value) => `${significant(value)} µs` }}
          y={y}
          columns={["implementation", "cpu_microseconds_per_request", "throughput"]}
        />
      )}
      {memory.length > 0 && (
        <ScatterChart
          title={`${testName(test)}: throughput against peak memory`}
          note="Peak resident memory of the server's processes, the database left out."
          dots={memory}
          x={{ label: "peak memory in MiB", format: (value) => bytes(value * 2 ** 20) }}
          y={y}
          columns={["implementation", "rss_peak_mebibytes", "throughput"]}
        />
      )}
    </div>
  );
}

function micro(value: number | null): number | null {
  return isNumber(value) ? value * 1e6 : null;
}
