// Random ids and numbers, and the number of rows that a request asks for.

export const ROWS = 10_000;
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

/** Returns a parameter as an integer clamped to `least`..`most`, or `absent` if it is not an integer. */
export function integer(parameter, { absent, least, most }) {
  if (!/^-?\d+$/.test(parameter)) return absent;
  return Math.min(Math.max(Number(parameter), least), most);
}

/** Returns the number of rows that a request asks for. */
export const rowCount = (parameter) => integer(parameter, { absent: 1, least: 1, most: MAX_QUERIES });
