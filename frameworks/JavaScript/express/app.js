// The Express application: the six tests' routes, and the headers that every response carries.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { Eta } from 'eta';
import express from 'express';

import { createWorldCache } from './cache.js';
import { distinctIds, integer, randomNumberOtherThan, randomRow, rowCount } from './random.js';

const MAX_DELAY_MS = 1000;
const MAX_CALLS = 100;
const VIEWS = fileURLToPath(new URL('views', import.meta.url));

export function createApp(database, upstream) {
  const app = express();
  app.disable('etag');
  app.disable('x-powered-by');
  app.set('views', VIEWS);
  app.set('view engine', 'eta');
  app.engine('eta', createEngine());

  // Node writes Date itself, and refreshes it once a second.
  app.use((req, res, next) => {
    res.setHeader('Server', 'Express');
    next();
  });

  app.get('/json', (req, res) => {
    res.json({ message: 'Hello, World!' });
  });

  app.get('/plaintext', (req, res) => {
    res.type('text/plain').send('Hello, World!');
  });

  app.get('/db', async (req, res) => {
    res.json(await database.world(randomRow()));
  });

  // Every row is fetched by its own SELECT.
  app.get('/queries', async (req, res) => {
    const ids = Array.from({ length: rowCount(req.query.queries) }, randomRow);
    res.json(await Promise.all(ids.map((id) => database.world(id))));
  });

  // Read each row, change it, write it; ids are distinct and ascending, so that concurrent updates can't deadlock.
  app.get('/updates', async (req, res) => {
    const ids = distinctIds(rowCount(req.query.queries));
    const worlds = await Promise.all(Array.from(ids, (id) => database.world(id)));
    for (const world of worlds) world.randomNumber = randomNumberOtherThan(world.randomNumber);
    await database.update(worlds);
    res.json(worlds);
  });

  const cachedWorlds = createWorldCache(database);
  app.get('/cached-queries', async (req, res) => {
    const ids = Array.from({ length: rowCount(req.query.count) }, randomRow);
    res.json(await cachedWorlds(ids));
  });

  app.get('/fortunes', async (req, res) => {
    const fortunes = await database.fortunes();
    fortunes.push({ id: 0, message: 'Additional fortune added at request time.' });
    fortunes.sort((a, b) => (a.message < b.message ? -1 : 1));
    res.render('fortunes', { fortunes });
  });

  app.get('/delay', (req, res) => {
    const ms = integer(req.query.ms, { absent: 0, least: 0, most: MAX_DELAY_MS });
    const answer = () => res.type('text/plain').send('Hello, World!');
    if (ms === 0) answer();
    else setTimeout(answer, ms);
  });

  app.get('/fan-out', async (req, res) => {
    if (!upstream) return res.sendStatus(503);
    const calls = integer(req.query.calls, { absent: 1, least: 1, most: MAX_CALLS });
    try {
      res.json({ calls, sum: await upstream.sum(calls) });
    } catch (error) {
      complain(`${req.path}: ${error.message}`);
      res.sendStatus(502);
    }
  });

  // Express passes what an async handler throws to here: without a status it comes from the database.
  app.use((error, req, res, next) => {
    if (!error.status) complain(`${req.path}: ${error.message}`);
    if (res.headersSent) return next(error);
    res.sendStatus(error.status ?? 503);
  });

  return app;
}

/** Eta as an Express view engine; each template is compiled once. */
function createEngine() {
  const eta = new Eta();
  const templates = new Map();
  return (file, data, callback) => {
    try {
      if (!templates.has(file)) templates.set(file, eta.compile(readFileSync(file, 'utf8')));
      callback(null, eta.render(templates.get(file), data));
    } catch (error) {
      callback(error);
    }
  };
}

/** Logs one failure a second at most: there may be as many as requests. */
const complain = (() => {
  let quietUntil = 0;
  return (message) => {
    if (Date.now() < quietUntil) return;
    quietUntil = Date.now() + 1000;
    console.error(message);
  };
})();
