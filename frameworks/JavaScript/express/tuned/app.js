// The tuned Express application, which bypasses Express's response functions.
import { readFileSync } from 'node:fs';

import compression from 'compression';
import { Eta } from 'eta';
import express from 'express';

import { withTotals } from '../items.js';
import { distinctIds, integer, randomNumberOtherThan, randomRow, rowCount } from '../random.js';
import { createWorldCache } from './cache.js';

const MAX_DELAY_MS = 1000;
const MAX_CALLS = 100;
const JSON_TYPE = 'application/json';
const TEXT_TYPE = 'text/plain';
const HTML_TYPE = 'text/html; charset=utf-8';

const eta = new Eta();
const fortunesTemplate = eta.compile(readFileSync(new URL('../views/fortunes.eta', import.meta.url), 'utf8'));
const fortunesPage = (data) => eta.render(fortunesTemplate, data);

export function createApp(database, upstream, { items, folder }) {
  const app = express();
  app.disable('etag');
  app.disable('x-powered-by');

  app.get('/json', (req, res) => {
    send(res, JSON_TYPE, JSON.stringify({ message: 'Hello, World!' }));
  });

  app.get('/plaintext', (req, res) => {
    send(res, TEXT_TYPE, 'Hello, World!');
  });

  app.get('/db', async (req, res) => {
    send(res, JSON_TYPE, JSON.stringify(await database.world(randomRow())));
  });

  // Each row is read with a separate SELECT.
  app.get('/queries', async (req, res) => {
    const ids = Array.from({ length: rowCount(req.query.queries) }, randomRow);
    send(res, JSON_TYPE, JSON.stringify(await Promise.all(ids.map((id) => database.world(id)))));
  });

  // Reads, changes and writes each row. Distinct ascending ids prevent deadlocks between concurrent updates.
  app.get('/updates', async (req, res) => {
    const ids = distinctIds(rowCount(req.query.queries));
    const worlds = await Promise.all(Array.from(ids, (id) => database.world(id)));
    for (const world of worlds) world.randomNumber = randomNumberOtherThan(world.randomNumber);
    await database.update(worlds);
    send(res, JSON_TYPE, JSON.stringify(worlds));
  });

  const cachedWorlds = createWorldCache(database);
  app.get('/cached-queries', async (req, res) => {
    const ids = Array.from({ length: rowCount(req.query.count) }, randomRow);
    send(res, JSON_TYPE, JSON.stringify(await cachedWorlds(ids)));
  });

  app.get('/fortunes', async (req, res) => {
    const fortunes = await database.fortunes();
    fortunes.push({ id: 0, message: 'Additional fortune added at request time.' });
    fortunes.sort((a, b) => (a.message < b.message ? -1 : 1));
    send(res, HTML_TYPE, fortunesPage({ fortunes }));
  });

  app.get('/delay', (req, res) => {
    const ms = integer(req.query.ms, { absent: 0, least: 0, most: MAX_DELAY_MS });
    const answer = () => send(res, TEXT_TYPE, 'Hello, World!');
    if (ms === 0) answer();
    else setTimeout(answer, ms);
  });

  app.get('/fan-out', async (req, res) => {
    if (!upstream) return res.sendStatus(503);
    const calls = integer(req.query.calls, { absent: 1, least: 1, most: MAX_CALLS });
    send(res, JSON_TYPE, JSON.stringify({ calls, sum: await upstream.sum(calls) }));
  });

  app.get('/json/:count', compression(), (req, res) => {
    if (!items) return res.sendStatus(503);
    const count = integer(req.params.count, { absent: 0, least: 0, most: items.length });
    const m = integer(req.query.m, { absent: 1, least: 1, most: Number.MAX_SAFE_INTEGER });
    send(res, JSON_TYPE, JSON.stringify(withTotals(items, count, m)));
  });

  if (folder) app.use('/static', express.static(folder, { index: false, redirect: false }));

  // Counts the bytes as they arrive instead of buffering the body.
  app.post('/upload', async (req, res) => {
    let bytes = 0;
    for await (const chunk of req) bytes += chunk.length;
    send(res, TEXT_TYPE, `${bytes}`);
  });

  // Express calls this function when a handler throws or rejects. Errors without a status are database failures.
  app.use((error, req, res, next) => {
    const status = error.statusCode ?? 503;
    if (status >= 500) complain(`${req.path}: ${error.message}`);
    if (res.headersSent) return next(error);
    res.sendStatus(status);
  });

  // Setting the header here, before Express runs, is faster than setting it in middleware.
  return (req, res) => {
    res.setHeader('Server', 'Express');
    app(req, res);
  };
}

/**
 * Sends a response. Node adds Content-Length and Date. `res.json`, `res.send` and `res.render` are slower, because they
 * also parse the content type, check freshness or look up views. README.md contains measurements.
 */
function send(res, type, body) {
  res.setHeader('Content-Type', type);
  res.end(body);
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
