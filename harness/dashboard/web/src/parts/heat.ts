// Heat colours of shares, on a logarithmic scale: half is as far from the best as a quarter is from half.

export const STEPS = 8;
const LOWEST = 0.08; // shares up to this value have the coldest colour

/** Return the step of a share, from 0 for the best to STEPS - 1. */
export function heat(share: number | null | undefined): number {
  if (typeof share !== "number" || !(share > 0)) return STEPS - 1;
  const cold = Math.log(Math.min(1, share)) / Math.log(LOWEST);
  return Math.min(STEPS - 1, Math.floor(cold * STEPS + 1e-9));
}
