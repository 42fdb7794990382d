// Draws random ids and numbers, and parses query parameters.

const ROWS = 10_000;
const MAX_QUERIES = 500;

/** Returns a uniformly random id in 1..10000. */
export const randomRow = (): number => Math.floor(Math.random() * ROWS) + 1;

/** Returns a uniformly random number in 1..10000 other than `other`, so that every write changes the row. */
export function randomNumberOtherThan(other: number): number {
  const drawn = Math.floor(Math.random() * (ROWS - 1)) + 1;
  return drawn < other ? drawn : drawn + 1;
}

/** Returns `count` distinct ids in ascending order, so that all updates lock rows in the same order. */
export function distinctIds(count: number): number[] {
  const ids = new Set<number>();
  while (ids.size < count) ids.add(randomRow());
  return Array.from(ids).sort((a, b) => a - b);
}

/** Returns a query parameter as an integer clamped to `low`..`high`, or `fallback` if it is not an integer. */
export function clamped(parameter: string | undefined, low: number, high: number, fallback: number): number {
  if (parameter === undefined || !/^-?\d+$/.test(parameter)) return fallback;
  return Math.min(Math.max(Number(parameter), low), high);
}

export const queryCount = (parameter: string | undefined): number => clamped(parameter, 1, MAX_QUERIES, 1);
