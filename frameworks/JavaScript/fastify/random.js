// Random ids and numbers, and the number of rows that a request asks for.

const ROWS = 10_000;
const MAX_QUERIES = 500;

/** Returns an id, uniform over 1..10000. */
export const randomRow = () => Math.floor(Math.random() * ROWS) + 1;

/** Returns a number, uniform over 1..10000 except `other`, so every write changes the row. */
export function randomNumberOtherThan(other) {
  const drawn = Math.floor(Math.random() * (ROWS - 1)) + 1;
  return drawn < other ? drawn : drawn + 1;
}

/** Returns `count` different ids in ascending order, the order in which rows are locked. */
export function distinctIds(count) {
  const ids = new Set();
  while (ids.size < count) ids.add(randomRow());
  return Array.from(ids).sort((a, b) => a - b);
}

/**
 * Returns a query parameter as an integer between `low` and `high`, or `otherwise` if it is missing or not an integer.
 * If the parameter is repeated, the first value counts.
 */
export function clamped(parameter, low, high, otherwise) {
  const text = Array.isArray(parameter) ? parameter[0] : parameter;
  if (!/^-?\d+$/.test(text)) return otherwise;
  return Math.min(Math.max(Number(text), low), high);
}

export const queryCount = (parameter) => clamped(parameter, 1, MAX_QUERIES, 1);
