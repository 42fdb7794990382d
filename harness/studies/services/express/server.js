// A small shop. Each `item` request first runs BURN loop iterations, which simulate a performance regression.
'use strict';

const express = require('express');

const burn = Number(process.env.BURN || 0);
const items = Array.from({ length: 1000 }, (_, index) => ({
  id: index + 1, name: `item ${index + 1}`, price: (index * 37) % 900 + 99, tags: ['new', 'small'],
}));

function waste(turns) {
  let state = 1;
  for (let turn = 0; turn < turns; turn++) state = (Math.imul(state, 1664525) + 1013904223) | 0;
  return state;
}

const app = express();
app.disable('x-powered-by');
app.get('/items', (request, response) => {
  const from = Number(request.query.start);
  response.json(items.slice(from, from + 20));
});
app.get('/items/:id', (request, response) => {
  waste(burn);
  const item = items[Number(request.params.id) - 1];
  if (item === undefined) return response.status(404).json({ error: 'no such item' });
  return response.json(item);
});
app.post('/orders', express.json(), (request, response) => {
  const lines = request.body.lines.map(({ id, count }) => ({ id, count, price: items[id - 1].price * count }));
  response.json({ lines, total: lines.reduce((sum, line) => sum + line.price, 0) });
});
app.listen(Number(process.env.PORT), '127.0.0.1');
