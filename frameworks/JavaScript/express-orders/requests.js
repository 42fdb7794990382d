// Parses requests: bodies with zod schemas, path and query parameters with regular expressions.
import createError from 'http-errors';
import { z } from 'zod';

const MAX_ID = 2n ** 63n - 1n;
const MAX_ITEM_ID = 2 ** 31 - 1;
const MAX_LIMIT = 100;

const card = z.string().regex(/^[0-9]{12,19}$/, 'a card has 12 to 19 digits');
const quantity = z.int().min(1).max(100);

export const newOrder = z.object({
  customerId: z.int32(),
  card,
  items: z
    .array(z.object({ itemId: z.int32(), quantity }))
    .min(1)
    .max(20)
    .refine((items) => new Set(items.map((item) => item.itemId)).size === items.length, 'an item appears twice'),
});
export const cardChange = z.object({ card });
export const itemAmount = z.object({ quantity });
export const load = z.object({ orders: z.int().min(1).max(1000) });

/** Validates the body and drops properties that are not in the schema. Throws a 400 error if the body is invalid. */
export function parsed(schema, body) {
  const { success, data, error } = schema.safeParse(body);
  if (success) return data;
  throw createError(400, error.issues.map(({ path, message }) => `${path.join('.') || 'body'}: ${message}`).join('; '));
}

/** Returns the query parameter `limit`, a number of rows. Throws a 400 error if it is not in 1..100. */
export function limit(text = '20') {
  const rows = /^[0-9]{1,3}$/.test(text) ? Number(text) : 0;
  if (rows < 1 || rows > MAX_LIMIT) throw createError(400, `limit: expected 1 to ${MAX_LIMIT}`);
  return rows;
}

/** Returns the order id as a string, because a number may be inexact. Throws a 404 error if the id is invalid. */
export function orderId(text) {
  if (!/^[1-9][0-9]{0,18}$/.test(text) || BigInt(text) > MAX_ID) throw createError(404, 'There is no such order');
  return text;
}

export function itemId(text) {
  const id = /^[1-9][0-9]{0,9}$/.test(text) ? Number(text) : 0;
  if (id < 1 || id > MAX_ITEM_ID) throw createError(404, 'There is no such item');
  return id;
}
