// Which of the heat colours a share of the best has: on a log scale, so that a half is as far from the best as a quarter
// from a half.

export const STEPS = 8;
const LOWEST = 0.08; // this share and any lower one have the coldest colour

/** 0 for the best, up to STEPS - 1. */
export function heat(share: number | null | undefined): number {
  if (typeof share !== "number" || !(share > 0)) return STEPS - 1;
  const cold = Math.log(Math.min(1, share)) / Math.log(LOWEST);
  return Math.min(STEPS - 1, Math.floor(cold * STEPS + 1e-9));
}
