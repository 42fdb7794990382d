// A small shop that stores items in PostgreSQL.
'use strict';

const express = require('express');
const { Pool } = require('pg');

const { DBHOST: host, DBPORT: port, DBNAME: database, DBUSER: user, DBPASS: password } = process.env;
const pool = new Pool({ host, port: Number(port), database, user, password, max: 16 });
const COLUMNS = 'SELECT id, name, price, tags FROM item';

const app = express();
app.disable('x-powered-by');
app.get('/items', async (request, response) => {
  const from = Number(request.query.start);
  const { rows } = await pool.query(`${COLUMNS} WHERE id > $1 AND id <= $2 ORDER BY id`, [from, from + 20]);
  response.json(rows);
});
app.get('/items/:id', async (request, response) => {
  const { rows } = await pool.query(`${COLUMNS} WHERE id = $1`, [Number(request.params.id)]);
  if (rows.length === 0) return response.status(404).json({ error: 'no such item' });
  return response.json(rows[0]);
});
app.post('/orders', express.json(), async (request, response) => {
  const asked = request.body.lines;
  const { rows } = await pool.query('SELECT id, price FROM item WHERE id = ANY($1)', [asked.map(({ id }) => id)]);
  const prices = new Map(rows.map(({ id, price }) => [id, price]));
  const lines = asked.map(({ id, count }) => ({ id, count, price: prices.get(id) * count }));
  response.json({ lines, total: lines.reduce((sum, line) => sum + line.price, 0) });
});

async function start() {
  await pool.query(`CREATE TABLE IF NOT EXISTS item AS
    SELECT id, 'item ' || id AS name, id * 37 % 900 + 99 AS price, '["new", "small"]'::jsonb AS tags
    FROM generate_series(1, 1000) AS id`);
  await pool.query('CREATE UNIQUE INDEX IF NOT EXISTS item_id ON item (id)');
  await pool.query('ANALYZE item');
  app.listen(Number(process.env.PORT), '127.0.0.1');
}

start();
