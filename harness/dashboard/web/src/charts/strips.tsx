// A chart with a strip for each group, such as a language, and a tick for each implementation. The tick of a group's
// best implementation is highlighted.
import { isNumber } from "../format";
import { Axes } from "./axes";
import { Chart } from "./frame";
import { shorten } from "./labels";
import { scaleFor, needsLogScale } from "./scales";

export interface Strip {
  name: string;
  members: { name: string; value: number }[]; // best first
  median: number;
}

interface Props {
  title: string;
  note: string;
  strips: Strip[];
  label: string;
  format: (value: number) => string;
  tickUnit: number | undefined; // see scaleFor
}

const ROW_HEIGHT = 30;

export function StripChart({ title, note, strips, label, format, tickUnit }: Props) {
  const values = strips.flatMap((strip) => strip.members.map((member) => member.value)).filter(isNumber);
  if (values.length === 0) return <p class="empty">{title}: no data to draw.</p>;
  const height = strips.length * ROW_HEIGHT + 84;
  const kind = needsLogScale(values) ? "log" : "linear";
  return (
    <Chart
      title={title}
      note={note}
      height={height}
      cells={{
        columns: ["group", "implementation", label],
        rows: strips.flatMap((strip) => strip.members.map((member) => [strip.name, member.name, member.value])),
      }}
    >
      {(width) => {
        const names = width < 560 ? 104 : 180;
        const box = { left: names, right: width - 18, top: 14, bottom: height - 50 };
        const x = scaleFor(kind, values, [box.left + 6, box.right], { fromZero: kind === "linear", unit: tickUnit });
        const xTicks = x
          .marks(Math.max(3, Math.floor(width / 130)))
          .map((value) => ({ at: x(value), text: format(value) }));
        const at = (index: number): number => box.top + index * ROW_HEIGHT + ROW_HEIGHT / 2;
        return {
          stops: strips.flatMap((strip, index) =>
            strip.members.map((member, place) => ({
              x: x(member.value),
              y: at(index),
              title: member.name,
              readings: [
                {
                  name: strip.name,
                  text: format(member.value),
                  y: at(index),
                  colorClass: place === 0 ? "series-1" : "series-0",
                },
              ],
            })),
          ),
          svg: (
            <>
              <Axes
                box={box}
                xTicks={xTicks}
                yTicks={[]}
                xLabel={kind === "log" ? `${label} (log scale)` : label}
                yLabel=""
              />
              {strips.map((strip, index) => (
                <g key={strip.name}>
                  <line class="grid" x1={box.left} x2={box.right} y1={at(index)} y2={at(index)} />
                  <text class="effect-name" x={box.left - 10} y={at(index)} dy="0.32em" text-anchor="end">
                    {shorten(`${strip.name} · ${strip.members.length}`, names - 14)}
                  </text>
                  {strip.members.map((member, place) => (
                    <rect
                      key={member.name}
                      class={place === 0 ? "strip best" : "strip"}
                      x={x(member.value) - 1.5}
                      y={at(index) - 8}
                      width="3"
                      height="16"
                    />
                  ))}
                  <circle class="strip-median" cx={x(strip.median)} cy={at(index)} r="4" />
                </g>
              ))}
            </>
          ),
        };
      }}
    </Chart>
  );
}
