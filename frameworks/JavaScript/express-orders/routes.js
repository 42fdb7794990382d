// The routes under /orders.
import express from 'express';

import { cardChange, itemAmount, itemId, limit, load, newOrder, orderId, parsed } from './requests.js';

export function ordersRouter(orders) {
  const router = express.Router();

  router.post('/', async (req, res) => {
    const order = await orders.create(parsed(newOrder, req.body));
    res.status(201).location(`/orders/${order.id}`).json(order);
  });

  router.get('/', async (req, res) => {
    res.json(await orders.newest(limit(req.query.limit)));
  });

  router.post('/dataload', async (req, res) => {
    res.status(201).json({ created: await orders.load(parsed(load, req.body).orders) });
  });

  router.get('/:id', async (req, res) => {
    res.json(await orders.read(orderId(req.params.id)));
  });

  router.put('/:id', async (req, res) => {
    const { card } = parsed(cardChange, req.body);
    res.json(await orders.changeCard(orderId(req.params.id), card));
  });

  router.delete('/:id', async (req, res) => {
    await orders.remove(orderId(req.params.id));
    res.status(204).end();
  });

  router.get('/:id/items', async (req, res) => {
    const { items } = await orders.read(orderId(req.params.id));
    res.json(items);
  });

  router.post('/:id/items/:itemId', async (req, res) => {
    const { quantity } = parsed(itemAmount, req.body);
    const order = await orders.addItem(orderId(req.params.id), itemId(req.params.itemId), quantity);
    res.status(201).json(order);
  });

  router.get('/:id/items/:itemId', async (req, res) => {
    res.json(await orders.item(orderId(req.params.id), itemId(req.params.itemId)));
  });

  router.delete('/:id/items/:itemId', async (req, res) => {
    await orders.removeItem(orderId(req.params.id), itemId(req.params.itemId));
    res.status(204).end();
  });

  return router;
}
