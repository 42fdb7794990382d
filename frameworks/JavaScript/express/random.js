// What is drawn at random for a request, and how many rows a request may ask for.

export const ROWS = 10_000;
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

/**
 * A number in the query string: an integer, clamped; `absent` when it is missing or anything else. Of a repeated
 * parameter the first counts.
 */
export function integer(parameter, { absent, least, most }) {
  const text = Array.isArray(parameter) ? parameter[0] : parameter;
  if (!/^-?\d+$/.test(text)) return absent;
  return Math.min(Math.max(Number(text), least), most);
}

/** How many rows a request asks for. */
export const rowCount = (parameter) => integer(parameter, { absent: 1, least: 1, most: MAX_QUERIES });
