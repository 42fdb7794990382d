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

/** Returns a query parameter as an integer clamped to `least`..`most`, or `absent` if it is not an integer. */
export function integer(parameter, { absent, least, most }) {
  if (!/^-?\d+$/.test(parameter)) return absent;
  return Math.min(Math.max(Number(parameter), least), most);
}

/** Returns the requested number of rows, clamped to 1..500. */
export const rowCount = (parameter) => integer(parameter, { absent: 1, least: 1, most: MAX_QUERIES });
