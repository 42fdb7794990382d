// Draws random ids and numbers, and parses query parameters.

export const ROWS = 10_000;
const MAX_QUERIES = 500;

/** Returns a uniformly random id in 1..10000. */
export const randomRow = () => Math.floor(Math.random() * ROWS) + 1;

/** Returns a uniformly random number in 1..10000 other than `other`, so that every write changes the row. */
export function randomNumberOtherThan(other) {
  const drawn = Math.floor(Math.random() * (ROWS - 1)) + 1;
  return drawn < other ? drawn : drawn + 1;
}

/** Returns `count` distinct ids in ascending order, so that all updates lock rows in the same order. */
export function distinctIds(count) {
  const ids = new Set();
  while (ids.size < count) ids.add(randomRow());
  return Array.from(ids).sort((a, b) => a - b);
}

/**
 * Returns a query parameter as an integer clamped to `low`..`high`, or `fallback` if it is missing or not an integer.
 * Only the first value of a repeated parameter is used.
 */
export function clamped(parameter, low, high, fallback) {
  const text = Array.isArray(parameter) ? parameter[0] : parameter;
  if (!/^-?\d+$/.test(text)) return fallback;
  return Math.min(Math.max(Number(text), low), high);
}

export const queryCount = (parameter) => clamped(parameter, 1, MAX_QUERIES, 1);
