// Heat colours on logarithmic scales, for ratios to the baseline and for shares of the best value.

export const STEPS = 8;
const LOWEST = 0.08; // shares of the best up to this value have the coldest colour
const NEUTRAL = 4; // colour step for a ratio of 1
const MIN_RANGE = 2; // a scale covers at least 1/2 to 2
const MAX_RANGE = 10; // a scale covers at most 1/10 to 10

/** Return the colour step of a share, from 0 for the best to STEPS - 1 for the worst. */
export function heat(share: number | null | undefined): number {
  if (typeof share !== "number" || !(share > 0)) return STEPS - 1;
  const cold = Math.log(Math.min(1, share)) / Math.log(LOWEST);
  return Math.min(STEPS - 1, Math.floor(cold * STEPS + 1e-9));
}

/** The ratios that have the warmest and the coldest colour. A ratio of 1 has the neutral colour. */
export interface RatioScale {
  warmest: number;
  coldest: number;
}

/** Return a scale that covers these ratios. The range is limited, so that outliers do not stretch it. */
export function ratioScale(ratios: readonly number[]): RatioScale {
  const range = (value: number): number => Math.min(MAX_RANGE, Math.max(MIN_RANGE, value));
  return {
    warmest: range(Math.max(1, ...ratios)),
    coldest: 1 / range(1 / Math.min(1, ...ratios)),
  };
}

/** Return the colour step of a ratio, from 0 (warmest) through NEUTRAL (a ratio near 1) to STEPS - 1 (coldest). */
export function ratioHeat(ratio: number, { warmest, coldest }: RatioScale): number {
  if (ratio >= 0.995 && ratio < 1.005) return NEUTRAL;
  if (ratio > 1) return NEUTRAL - Math.min(NEUTRAL, Math.ceil((NEUTRAL * Math.log(ratio)) / Math.log(warmest)));
  const colder = STEPS - 1 - NEUTRAL;
  return NEUTRAL + Math.min(colder, Math.ceil((colder * Math.log(ratio)) / Math.log(coldest)));
}
