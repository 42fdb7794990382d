// Pure functions for linear and logarithmic scales and their ticks.
import { scaleLinear, scaleLog } from "d3-scale";

export type ScaleKind = "linear" | "log";

export interface Scale {
  (value: number): number;
  /** Return about `count` tick values. */
  marks(count: number): number[];
}

interface ScaleOptions {
  fromZero?: boolean; // whether a linear scale includes zero
  unit?: number | undefined; // ticks are round multiples of this unit, for example of 1 MiB
}

/** Create a scale that covers all values. */
export function scaleFor(
  kind: ScaleKind,
  values: readonly number[],
  range: [number, number],
  { fromZero = false, unit = 1 }: ScaleOptions = {},
): Scale {
  const scaled = values.map((value) => value / unit);
  const scale = kind === "log" ? logScale(scaled, range) : linearScale(scaled, range, fromZero);
  return Object.assign((value: number) => scale(value / unit), {
    marks: (count: number) => scale.marks(count).map((mark) => mark * unit),
  });
}

function logScale(values: readonly number[], range: [number, number]): Scale {
  let [low, high] = extent(values.filter((value) => value > 0));
  if (low === high) [low, high] = [low / 2, high * 2];
  const scale = scaleLog().domain([low, high]).range(range).clamp(true);
  return Object.assign((value: number) => scale(value), { marks: () => logMarks(low, high) });
}

function linearScale(values: readonly number[], range: [number, number], fromZero: boolean): Scale {
  let [low, high] = extent(values);
  if (fromZero) low = Math.min(0, low);
  if (low === high) [low, high] = fromZero ? [low, low + 1] : low > 0 ? [0, 2 * low] : [low - 1, high + 1];
  const plain = scaleLinear().domain([low, high]).range(range);
  const scale = fromZero ? plain.nice(6) : plain;
  return Object.assign((value: number) => scale(value), { marks: (count: number) => scale.ticks(count) });
}

function extent(values: readonly number[]): [number, number] {
  return values.length > 0 ? [Math.min(...values), Math.max(...values)] : [1, 10];
}

/**
 * Return whether all values are positive and the largest exceeds `span` times the smallest. A linear axis would crowd
 * the small values.
 */
export function needsLogScale(values: readonly number[], span = 20): boolean {
  const positive = values.filter((value) => value > 0);
  return (
    positive.length > 1 && positive.length === values.length && Math.max(...positive) / Math.min(...positive) > span
  );
}

/** Return ticks at 1, 2 and 5 in each decade, or fewer ticks per decade if the range is wide. */
function logMarks(low: number, high: number): number[] {
  const decades = Math.log10(high / low);
  const steps = decades > 4 ? [1] : decades > 1.5 ? [1, 3] : [1, 2, 5];
  const values: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
    for (const step of steps) {
      const value = step * 10 ** power;
      if (value >= low * 0.999 && value <= high * 1.001) values.push(value);
    }
  return values.length > 1 ? values : [low, high];
}
