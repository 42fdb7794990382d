// The items of the data set, with totals.

/** Returns the items in the file that DATASET names, or null without the variable. */
export function readItems() {
  return process.env.DATASET ? JSON.parse(String(vertx.fileSystem().readFileBlocking(process.env.DATASET))) : null;
}

/** Returns the first `count` items, each with `total` = price x quantity x m. */
export function withTotals(items, count, m) {
  const first = items.slice(0, count).map((item) => ({ ...item, total: item.price * item.quantity * m }));
  return { items: first, count: first.length };
}
