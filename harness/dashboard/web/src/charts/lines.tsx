// Lines over a numeric axis, with intervals as whiskers, shaded spans, and the nearest point told on hover.
import { scaleLinear, scaleLog } from "d3-scale";
import { line as linePath } from "d3-shape";
import { isNumber } from "../format";
import { Axes, type Box, type Tick, thin } from "./axes";
import { Chart } from "./frame";
import { type Look, markPath } from "./palette";

export interface Point {
  x: number;
  y: number | null;
  low?: number | null;
  high?: number | null;
  note?: string; // instead of the x value in the hover text
}

export interface Series {
  name: string;
  look: Look;
  points: Point[];
  strong?: boolean;
}

interface Props {
  title: string;
  heading?: "h2" | "h3";
  note?: preact.ComponentChildren;
  series: Series[];
  xLabel: string;
  yLabel: string;
  xScale: "linear" | "log";
  yScale: "linear" | "log";
  xTicks?: number[];
  formatX: (value: number) => string;
  formatY: (value: number) => string;
  formatTick?: (value: number) => string;
  formatXTick?: (value: number) => string;
  spans?: { from: number; to: number; name: string }[];
  marks?: boolean;
  height?: number;
  columns: [string, string, string]; // names of series, x and y in the table
}

export function LineChart(props: Props) {
  const {
    title,
    note,
    series,
    xLabel,
    yLabel,
    formatX,
    formatY,
    spans = [],
    marks = true,
    height = 360,
    columns,
  } = props;
  const points = series.flatMap((one) => one.points.filter((point) => isNumber(point.y) && isNumber(point.x)));
  const formatTick = props.formatTick ?? formatY;
  const withInterval = points.some((point) => isNumber(point.low));
  const cells = {
    columns: withInterval ? [...columns, "low", "high"] : [...columns],
    rows: series.flatMap((one) =>
      one.points.map((point) => {
        const row = [one.name, point.note ?? point.x, point.y];
        return withInterval ? [...row, point.low ?? null, point.high ?? null] : row;
      }),
    ),
  };
  if (points.length === 0) return <p class="empty">{title}: there is nothing to draw.</p>;
  const legend = (
    <ul class="legend">
      {series.map((one) => (
        <li key={one.name} class={one.look.class}>
          <svg width="26" height="12" aria-hidden="true">
            <line class="line" x1="1" x2="25" y1="6" y2="6" stroke-dasharray={one.look.dash} />
            {marks && <path class="point" transform="translate(13,6)" d={markPath(one.look.mark)} />}
          </svg>
          <bdi>{one.name}</bdi>
        </li>
      ))}
    </ul>
  );
  return (
    <Chart title={title} heading={props.heading} note={note} height={height} cells={cells} legend={legend}>
      {(width, show) => {
        const box: Box = { left: 62, right: width - 16, top: 28, bottom: height - 44 };
        const xs = [...points.map((point) => point.x), ...spans.flatMap((span) => [span.from, span.to])];
        const x = scaleFor(props.xScale, xs, [box.left + 6, box.right - 6], false);
        const ys = points.flatMap((point) => [point.y, point.low, point.high]).filter(isNumber);
        const y = scaleFor(props.yScale, ys, [box.bottom, box.top], props.yScale === "linear");
        const path = linePath<Point>()
          .defined((point) => isNumber(point.y))
          .x((point) => x(point.x))
          .y((point) => y(point.y as number));
        const xTicks = thin(
          (props.xTicks ?? x.ticks(Math.max(3, Math.floor(width / 110)))).map((value): Tick => ({
            at: x(value),
            text: (props.formatXTick ?? formatX)(value),
          })),
          44,
        );
        const yTicks = yValues(y, props.yScale).map((value): Tick => ({ at: y(value), text: formatTick(value) }));
        const nearest = (event: PointerEvent): void => {
          const area = (event.currentTarget as SVGElement).getBoundingClientRect();
          const at = { x: event.clientX - area.left + box.left, y: event.clientY - area.top + box.top };
          let found: { distance: number; one: Series; point: Point } | null = null;
          for (const one of series)
            for (const point of one.points) {
              if (!isNumber(point.y)) continue;
              const distance = Math.hypot(x(point.x) - at.x, (y(point.y) - at.y) * 0.8);
              if (!found || distance < found.distance) found = { distance, one, point };
            }
          if (!found) return;
          const { one, point } = found;
          show({
            x: x(point.x),
            y: y(point.y as number),
            text: (
              <>
                <strong>
                  <bdi>{one.name}</bdi>
                </strong>
                <br />
                {point.note ?? formatX(point.x)}: {formatY(point.y as number)}
                {isNumber(point.low) && isNumber(point.high) && ` [${formatY(point.low)}, ${formatY(point.high)}]`}
              </>
            ),
          });
        };
        return (
          <>
            {spans.map((span) => (
              <g class="span" key={span.name}>
                <rect
                  x={x(span.from)}
                  y={box.top}
                  width={Math.max(0, x(span.to) - x(span.from))}
                  height={box.bottom - box.top}
                />
                <text x={x(span.from) + 6} y={box.top + 14}>
                  {span.name}
                </text>
              </g>
            ))}
            <Axes box={box} xTicks={xTicks} yTicks={yTicks} xLabel={xLabel} yLabel={yLabel} />
            {series.map((one) => (
              <g key={one.name} class={`${one.look.class}${one.strong ? " strong" : ""}`}>
                <path class="line" fill="none" d={path(one.points) ?? ""} stroke-dasharray={one.look.dash} />
                {marks &&
                  one.points.map((point, index) =>
                    isNumber(point.y) ? (
                      <g key={index}>
                        {isNumber(point.low) && isNumber(point.high) && (
                          <line class="error" x1={x(point.x)} x2={x(point.x)} y1={y(point.low)} y2={y(point.high)} />
                        )}
                        <path
                          class="point"
                          transform={`translate(${x(point.x)},${y(point.y)})`}
                          d={markPath(one.look.mark)}
                        />
                      </g>
                    ) : null,
                  )}
              </g>
            ))}
            <rect
              data-sensor
              class="sensor"
              x={box.left}
              y={box.top}
              width={Math.max(0, box.right - box.left)}
              height={Math.max(0, box.bottom - box.top)}
              onPointerMove={nearest}
              onPointerDown={nearest}
            />
          </>
        );
      }}
    </Chart>
  );
}

type Scale = ReturnType<typeof scaleLinear<number, number>> | ReturnType<typeof scaleLog<number, number>>;

function scaleFor(kind: "linear" | "log", values: number[], range: [number, number], fromZero: boolean): Scale {
  const usable = kind === "log" ? values.filter((value) => value > 0) : values;
  let low = Math.min(...usable);
  let high = Math.max(...usable);
  if (fromZero) low = Math.min(0, low);
  if (low === high) [low, high] = kind === "log" ? [low / 2, high * 2] : [low - 1, high + 1];
  if (kind === "log") return scaleLog().domain([low, high]).range(range).clamp(true);
  return fromZero
    ? scaleLinear().domain([low, high]).nice(6).range(range)
    : scaleLinear().domain([low, high]).range(range);
}

/** Five or six grid lines; on a log scale the 1, 2 and 5 of each decade. */
function yValues(scale: Scale, kind: "linear" | "log"): number[] {
  if (kind === "linear") return scale.ticks(5);
  const [low = 1, high = 10] = scale.domain();
  const decades = Math.log10(high / low);
  const steps = decades > 4 ? [1] : decades > 1.5 ? [1, 3] : [1, 2, 5];
  const values: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
    for (const step of steps) {
      const value = step * 10 ** power;
      if (value >= low && value <= high) values.push(value);
    }
  return values;
}
