// Export of the ranking that is shown: its figures, or a drawing of its bars.
import { render } from "preact";
import type { RunDocument, Table } from "../documents";
import { type Cells, saveCsv, saveJson, savePng, saveSvg } from "../export";
import { isNumber, rate, ranks } from "../format";
import { usePage } from "../hooks";
import { label, testName } from "../level";
import { byName, type Line, lines, shown } from "../table";
import { largest } from "./bar";
import { Menu } from "./basics";

export function ExportMenu({
  document: { run, ranking },
  table,
  test,
}: {
  document: RunDocument;
  table: Table;
  test: string;
}) {
  const { route } = usePage();
  const current = (): Line[] => shown(lines(table, byName(run), route.metric, route.base, ranking.reference), route);
  const title = `${testName(test)} ${run.name}`;
  const draw = (use: (svg: SVGSVGElement, name: string) => unknown): void => {
    const holder = globalThis.document.createElement("div");
    holder.className = "drawing";
    globalThis.document.body.append(holder);
    render(<Drawing list={current()} title={title} metric={route.metric} />, holder);
    const done = use(holder.querySelector("svg") as SVGSVGElement, title);
    void Promise.resolve(done).finally(() => {
      render(null, holder);
      holder.remove();
    });
  };
  return (
    <Menu label="Export" align="right">
      <div class="choices">
        <button type="button" onClick={() => saveCsv(cells(current()), title)}>
          CSV
        </button>
        <button type="button" onClick={() => saveJson(cells(current()), title)}>
          JSON
        </button>
        <button type="button" onClick={() => draw(saveSvg)}>
          SVG
        </button>
        <button type="button" onClick={() => draw(savePng)}>
          PNG
        </button>
      </div>
    </Menu>
  );
}

/** The table's figures in SI units. */
export function cells(list: readonly Line[]): Cells {
  const columns = [
    "implementation",
    "language",
    "platform",
    "level",
    "ranked",
    "rank_low",
    "rank_high",
    "tie_group",
    "throughput",
    "throughput_low",
    "throughput_high",
    "replicates",
    "ratio",
    "ratio_low",
    "ratio_high",
    "cpu_seconds_per_request",
    "cpu_low",
    "cpu_high",
    "rss_peak_bytes",
    "first_answer_seconds",
    "errors",
    "notes",
  ];
  return {
    columns,
    rows: list.map(({ name, row, info, standing, ratio }) => {
      const throughput = row.throughput?.estimate;
      const cpu = row.cpu_per_request?.estimate;
      return [
        name,
        info?.language ?? "",
        info?.platform ?? "",
        row.level ? label(row.level) : "",
        row.ranked,
        standing?.rank.low ?? null,
        standing?.rank.high ?? null,
        standing?.tie_group ?? null,
        throughput?.median ?? null,
        throughput?.low ?? null,
        throughput?.high ?? null,
        throughput?.replicates ?? null,
        ratio?.value ?? null,
        ratio?.low ?? null,
        ratio?.high ?? null,
        cpu?.median ?? null,
        cpu?.low ?? null,
        cpu?.high ?? null,
        row.rss_peak,
        row.first_answer,
        row.errors,
        [row.reason, ...row.words].filter(Boolean).join("; "),
      ];
    }),
  };
}

function Drawing({ list, title, metric }: { list: Line[]; title: string; metric: string }) {
  const most = largest(list.map((line) => line.standing?.estimate)) || 1;
  const width = 960;
  const height = 64 + list.length * 26;
  const at = (value: number): number => 300 + (Math.max(0, value) / most) * 520;
  return (
    <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`}>
      <text class="drawing-title" x="20" y="34">
        {title}: {metric === "cpu" ? "CPU per request" : "requests/s"}
      </text>
      {list.map((line, index) => {
        const y = 52 + index * 26;
        const estimate = line.standing?.estimate;
        return (
          <g key={line.name}>
            <text class="tick" x="52" y={y + 15} text-anchor="end">
              {line.row.ranked ? ranks(line.standing?.rank) : "–"}
            </text>
            <text class="effect-name" x="66" y={y + 15}>
              {line.name.slice(0, 34)}
            </text>
            {estimate && isNumber(estimate.median) && (
              <>
                <rect
                  class="drawing-bar"
                  x="300"
                  y={y + 4}
                  width={Math.max(0, at(estimate.median) - 300)}
                  height="14"
                />
                {isNumber(estimate.low) && isNumber(estimate.high) && (
                  <path
                    class="drawing-whisker"
                    fill="none"
                    d={`M${at(estimate.low)},${y + 6}v10M${at(estimate.low)},${y + 11}H${at(estimate.high)}M${at(estimate.high)},${y + 6}v10`}
                  />
                )}
                <text class="tick" x="834" y={y + 15}>
                  {metric === "cpu" ? `${(estimate.median * 1e6).toPrecision(3)} µs` : rate(estimate.median)}
                </text>
              </>
            )}
            {!estimate && (
              <text class="tick" x="300" y={y + 15}>
                {line.row.reason}
              </text>
            )}
          </g>
        );
      })}
    </svg>
  );
}
