// What is drawn at random for a request, and how many rows a request may ask for.

const ROWS = 10_000;
const MAX_QUERIES = 500;

/** An id uniform over 1..10000. */
export const randomRow = () => Math.floor(Math.random() * ROWS) + 1;

/** A number uniform over 1..10000 without `other`, so that a write always changes the row. */
export function randomNumberOtherThan(other) {
  const drawn = Math.floor(Math.random() * (ROWS - 1)) + 1;
  return drawn < other ? drawn : drawn + 1;
}

/** `count` different ids in ascending order, the order in which rows are locked. */
export function distinctIds(count) {
  const ids = new Set();
  while (ids.size < count) ids.add(randomRow());
  return Array.from(ids).sort((a, b) => a - b);
}

/** The requirement: an integer, clamped to 1..500; 1 when the parameter is absent or anything else. */
export function queryCount(parameter) {
  if (!/^-?\d+$/.test(parameter)) return 1;
  return Math.min(Math.max(Number(parameter), 1), MAX_QUERIES);
}
