// Access to orders in PostgreSQL. An order's row is locked before the items change, so the total stays consistent.
import createError from 'http-errors';

import { transaction } from './database.js';
import { cents, money } from './money.js';

const LOADED_CARD = '4111111111111111';

// pg prepares a named statement only once per connection.
const statement = (name, text) => (values) => ({ name, text, values });

const SELECT_CUSTOMER = statement('customer', 'SELECT id FROM customer WHERE id = $1');
const SELECT_PRICES = statement('prices', 'SELECT id, price FROM item WHERE id = ANY ($1::int[])');
const INSERT_ORDER = statement(
  'insert order',
  'INSERT INTO orders (customer_id, card, total) VALUES ($1, $2, $3) RETURNING id',
);
const INSERT_ITEMS = statement(
  'insert items',
  `INSERT INTO order_item (order_id, item_id, quantity, price)
   SELECT $1, * FROM unnest($2::int[], $3::int[], $4::numeric[]) ON CONFLICT DO NOTHING`,
);
const SELECT_NEWEST = statement(
  'newest',
  'SELECT id, customer_id AS "customerId", card, total FROM orders ORDER BY id DESC LIMIT $1',
);
// A single statement reads the total and the items, so they are consistent.
const SELECT_ORDER = statement(
  'order',
  `SELECT id, customer_id, card, total, item_id, quantity, price
   FROM orders LEFT JOIN order_item ON order_id = id WHERE id = $1 ORDER BY item_id`,
);
const SELECT_ITEM = statement(
  'item',
  'SELECT item_id AS "itemId", quantity, price FROM order_item WHERE order_id = $1 AND item_id = $2',
);
const LOCK_ORDER = statement('lock', 'SELECT id FROM orders WHERE id = $1 FOR UPDATE');
const UPDATE_CARD = statement('card', 'UPDATE orders SET card = $2 WHERE id = $1');
const UPDATE_TOTAL = statement(
  'total',
  `UPDATE orders
   SET total = (SELECT coalesce(sum(quantity * price), 0) FROM order_item WHERE order_id = $1) WHERE id = $1`,
);
const DELETE_ITEM = statement('delete item', 'DELETE FROM order_item WHERE order_id = $1 AND item_id = $2');
// The foreign key's ON DELETE CASCADE also deletes the order's items.
const DELETE_ORDER = statement('delete order', 'DELETE FROM orders WHERE id = $1');
// Order k (from 0) belongs to customer 1 + k mod 1000, and contains the item with the customer's id.
const LOAD = statement(
  'load',
  `WITH loaded AS (
     INSERT INTO orders (customer_id, card, total)
     SELECT item.id, $2, item.price FROM generate_series(0, $1::int - 1) k JOIN item ON item.id = 1 + k % 1000 ORDER BY k
     RETURNING id, customer_id, total)
   INSERT INTO order_item (order_id, item_id, quantity, price) SELECT id, customer_id, 1, total FROM loaded`,
);

export class Orders {
  #pool;

  constructor(pool) {
    this.#pool = pool;
  }

  create({ customerId, card, items }) {
    return transaction(this.#pool, async (client) => {
      const { rowCount } = await client.query(SELECT_CUSTOMER([customerId]));
      if (!rowCount) throw createError(400, `There is no customer ${customerId}`);
      const priced = await withPrices(client, items);
      const total = money(priced.reduce((sum, { quantity, price }) => sum + BigInt(quantity) * cents(price), 0n));
      const { rows } = await client.query(INSERT_ORDER([customerId, card, total]));
      await insertItems(client, rows[0].id, priced);
      return { id: rows[0].id, customerId, card, total, items: priced };
    });
  }

  /** Returns the newest orders without their items, newest first. */
  async newest(count) {
    return (await this.#pool.query(SELECT_NEWEST([count]))).rows;
  }

  read(id) {
    return order(this.#pool, id);
  }

  changeCard(id, card) {
    return transaction(this.#pool, async (client) => {
      await client.query(UPDATE_CARD([id, card]));
      return order(client, id);
    });
  }

  async remove(id) {
    const { rowCount } = await this.#pool.query(DELETE_ORDER([id]));
    if (!rowCount) throw noOrder(id);
  }

  async item(id, itemId) {
    const { rows } = await this.#pool.query(SELECT_ITEM([id, itemId]));
    if (!rows.length) throw createError(404, `Order ${id} has no item ${itemId}`);
    return rows[0];
  }

  addItem(id, itemId, quantity) {
    return transaction(this.#pool, async (client) => {
      await lock(client, id);
      const inserted = await insertItems(client, id, await withPrices(client, [{ itemId, quantity }]));
      if (!inserted) throw createError(409, `Order ${id} already has item ${itemId}`);
      await client.query(UPDATE_TOTAL([id]));
      return order(client, id);
    });
  }

  removeItem(id, itemId) {
    return transaction(this.#pool, async (client) => {
      await lock(client, id);
      const { rowCount } = await client.query(DELETE_ITEM([id, itemId]));
      if (!rowCount) throw createError(404, `Order ${id} has no item ${itemId}`);
      await client.query(UPDATE_TOTAL([id]));
    });
  }

  /** Creates `count` orders with one item each in a single statement, and returns how many were created. */
  async load(count) {
    return (await this.#pool.query(LOAD([count, LOADED_CARD]))).rowCount;
  }
}

/** Returns the items with their current prices, sorted by id. Throws a 400 error if an item does not exist. */
async function withPrices(client, items) {
  const { rows } = await client.query(SELECT_PRICES([items.map((item) => item.itemId)]));
  const prices = new Map(rows.map((row) => [row.id, row.price]));
  return items
    .map(({ itemId, quantity }) => {
      if (!prices.has(itemId)) throw createError(400, `There is no item ${itemId}`);
      return { itemId, quantity, price: prices.get(itemId) };
    })
    .sort((a, b) => a.itemId - b.itemId);
}

/** Inserts the items that the order does not yet contain, and returns how many were inserted. */
async function insertItems(client, id, items) {
  const columns = ['itemId', 'quantity', 'price'].map((name) => items.map((item) => item[name]));
  return (await client.query(INSERT_ITEMS([id, ...columns]))).rowCount;
}

/** Locks the order's row until the transaction ends. */
async function lock(client, id) {
  const { rowCount } = await client.query(LOCK_ORDER([id]));
  if (!rowCount) throw noOrder(id);
}

async function order(client, id) {
  const { rows } = await client.query(SELECT_ORDER([id]));
  if (!rows.length) throw noOrder(id);
  return {
    id: rows[0].id,
    customerId: rows[0].customer_id,
    card: rows[0].card,
    total: rows[0].total,
    items: rows
      .filter((row) => row.item_id !== null)
      .map((row) => ({ itemId: row.item_id, quantity: row.quantity, price: row.price })),
  };
}

const noOrder = (id) => createError(404, `There is no order ${id}`);
