// Reads the data set and adds totals to the items.
import { readFileSync } from 'node:fs';

/** Returns the items in the file $DATASET, or null if the variable is not set. */
export function readItems() {
  return process.env.DATASET ? JSON.parse(readFileSync(process.env.DATASET, 'utf8')) : null;
}

/** Returns the first `count` items, each with `total` = price x quantity x m. */
export function withTotals(items, count, m) {
  const first = items.slice(0, count).map((item) => ({ ...item, total: item.price * item.quantity * m }));
  return { items: first, count: first.length };
}
