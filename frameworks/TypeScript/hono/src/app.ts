// The Hono application: routes, headers and errors. It runs unchanged on Bun and Deno.
import { Hono } from 'hono';
import { html } from 'hono/html';

import { cachedWorlds, fortunes, updateWorlds, worlds } from './database.ts';
import { clamped, distinctIds, queryCount, randomNumberOtherThan, randomRow } from './random.ts';
import { sum } from './upstream.ts';

const UPSTREAM_URL = process.env.UPSTREAM_URL;

export const app = new Hono();

app.use(async (c, next) => {
  c.header('server', 'Hono');
  await next();
});

app.get('/json', (c) => c.json({ message: 'Hello, World!' }));

app.get('/plaintext', (c) => c.text('Hello, World!'));

app.get('/db', async (c) => {
  const [world] = await worlds([randomRow()]);
  return c.json(world);
});

// Each row is read with a separate SELECT.
app.get('/queries', async (c) => {
  const ids = Array.from({ length: queryCount(c.req.query('queries')) }, randomRow);
  return c.json(await worlds(ids));
});

app.get('/cached-queries', async (c) => {
  const ids = Array.from({ length: queryCount(c.req.query('count')) }, randomRow);
  return c.json(await cachedWorlds(ids));
});

// Reads, changes and writes each row. Distinct ascending ids prevent deadlocks between concurrent updates.
app.get('/updates', async (c) => {
  const changed = await worlds(distinctIds(queryCount(c.req.query('queries'))));
  for (const world of changed) world.randomNumber = randomNumberOtherThan(world.randomNumber);
  await updateWorlds(changed);
  return c.json(changed);
});

app.get('/fortunes', async (c) => {
  const rows = [...(await fortunes()), { id: 0, message: 'Additional fortune added at request time.' }];
  rows.sort((a, b) => (a.message < b.message ? -1 : 1));
  return c.html(
    html`<!DOCTYPE html><html><head><title>Fortunes</title></head><body><table><tr><th>id</th><th>message</th></tr>${rows.map(
      ({ id, message }) => html`<tr><td>${id}</td><td>${message}</td></tr>`,
    )}</table></body></html>`,
  );
});

app.get('/delay', async (c) => {
  const due = performance.now() + clamped(c.req.query('ms'), 0, 1000, 0);
  // Timers use the event loop's millisecond clock, so they may fire up to a millisecond early.
  for (let left; (left = due - performance.now()) > 0; ) await new Promise((done) => setTimeout(done, Math.ceil(left)));
  return c.text('Hello, World!');
});

app.get('/fan-out', async (c) => {
  if (!UPSTREAM_URL) return c.body(null, 503);
  const calls = clamped(c.req.query('calls'), 1, 100, 1);
  try {
    return c.json({ calls, sum: await sum(UPSTREAM_URL, calls) });
  } catch (error) {
    console.error(`upstream call failed: ${error}`);
    return c.body(null, 502);
  }
});

app.onError((error, c) => {
  console.error(`${c.req.method} ${c.req.path}: ${error}`);
  return c.body(null, 503);
});
