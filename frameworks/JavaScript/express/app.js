// The Express application: settings, a route for each test, and error handling.
import path from 'node:path';

import compression from 'compression';
import express from 'express';

import { withTotals } from './items.js';
import { distinctIds, integer, randomNumberOtherThan, randomRow, rowCount } from './random.js';

const MAX_DELAY_MS = 1000;
const MAX_CALLS = 100;

export function createApp(database, upstream, { items, folder }) {
  const app = express();
  // Clients send no conditional requests, so an ETag would only cost a hash of each body.
  app.disable('etag');
  app.disable('x-powered-by');
  app.set('views', path.join(import.meta.dirname, 'views'));
  app.set('view engine', 'pug');

  app.use((req, res, next) => {
    res.set('Server', 'Express');
    next();
  });

  app.get('/json', (req, res) => {
    res.json({ message: 'Hello, World!' });
  });

  app.get('/plaintext', (req, res) => {
    res.type('text').send('Hello, World!');
  });

  app.get('/db', async (req, res) => {
    res.json(await database.world(randomRow()));
  });

  // Each row is read with a separate SELECT.
  app.get('/queries', async (req, res) => {
    res.json(await database.worlds(Array.from({ length: rowCount(req.query.queries) }, randomRow)));
  });

  // Reads, changes and writes each row. Distinct ascending ids prevent deadlocks between concurrent updates.
  app.get('/updates', async (req, res) => {
    const worlds = await database.worlds(distinctIds(rowCount(req.query.queries)));
    for (const world of worlds) world.randomNumber = randomNumberOtherThan(world.randomNumber);
    await database.update(worlds);
    res.json(worlds);
  });

  app.get('/cached-queries', async (req, res) => {
    res.json(await database.cachedWorlds(Array.from({ length: rowCount(req.query.count) }, randomRow)));
  });

  app.get('/fortunes', async (req, res) => {
    const fortunes = await database.fortunes();
    fortunes.push({ id: 0, message: 'Additional fortune added at request time.' });
    fortunes.sort((a, b) => (a.message < b.message ? -1 : 1));
    res.render('fortunes', { fortunes });
  });

  app.get('/delay', (req, res) => {
    const ms = integer(req.query.ms, { absent: 0, least: 0, most: MAX_DELAY_MS });
    const respond = () => res.type('text').send('Hello, World!');
    if (ms === 0) respond();
    else setTimeout(respond, ms);
  });

  app.get('/fan-out', async (req, res) => {
    if (!upstream) return res.sendStatus(503);
    const calls = integer(req.query.calls, { absent: 1, least: 1, most: MAX_CALLS });
    res.json({ calls, sum: await upstream.sum(calls) });
  });

  app.get('/json/:count', compression(), (req, res) => {
    if (!items) return res.sendStatus(503);
    const count = integer(req.params.count, { absent: 0, least: 0, most: items.length });
    const m = integer(req.query.m, { absent: 1, least: 1, most: Number.MAX_SAFE_INTEGER });
    res.json(withTotals(items, count, m));
  });

  if (folder) app.use('/static', express.static(folder, { index: false, redirect: false }));

  // Counts the bytes as they arrive instead of buffering the body.
  app.post('/upload', async (req, res) => {
    let bytes = 0;
    for await (const chunk of req) bytes += chunk.length;
    res.type('text').send(`${bytes}`);
  });

  // Express calls this function when a handler throws or rejects.
  app.use((error, req, res, next) => {
    const status = error.statusCode ?? 500;
    if (status >= 500) complain(`${req.method} ${req.path}: ${error.message}`);
    if (res.headersSent) return next(error);
    res.sendStatus(status);
  });

  return app;
}

/** Logs at most one failure per second. */
const complain = (() => {
  let quietUntil = 0;
  return (message) => {
    if (Date.now() < quietUntil) return;
    quietUntil = Date.now() + 1000;
    console.error(message);
  };
})();
