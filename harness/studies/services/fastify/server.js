// A small shop. Each `item` request first runs BURN loop iterations, which simulate a performance regression.
'use strict';

const app = require('fastify')();

const burn = Number(process.env.BURN || 0);
const items = Array.from({ length: 1000 }, (_, index) => ({
  id: index + 1, name: `item ${index + 1}`, price: (index * 37) % 900 + 99, tags: ['new', 'small'],
}));

function waste(turns) {
  let state = 1;
  for (let turn = 0; turn < turns; turn++) state = (Math.imul(state, 1664525) + 1013904223) | 0;
  return state;
}

app.get('/items', async (request) => {
  const from = Number(request.query.start);
  return items.slice(from, from + 20);
});
app.get('/items/:id', async (request, reply) => {
  waste(burn);
  const item = items[Number(request.params.id) - 1];
  return item === undefined ? reply.code(404).send({ error: 'no such item' }) : item;
});
app.post('/orders', async (request) => {
  const lines = request.body.lines.map(({ id, count }) => ({ id, count, price: items[id - 1].price * count }));
  return { lines, total: lines.reduce((sum, line) => sum + line.price, 0) };
});
app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) });
