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

/** The integer that a parameter holds, clamped; `otherwise` when absent or anything else. Of a repeated one the first. */
export function clamped(parameter, low, high, otherwise) {
  const text = Array.isArray(parameter) ? parameter[0] : parameter;
  if (!/^-?\d+$/.test(text)) return otherwise;
  return Math.min(Math.max(Number(text), low), high);
}

export const queryCount = (parameter) => clamped(parameter, 1, MAX_QUERIES, 1);
