// The Fastify application: routes, response schemas and common response headers.
import { fileURLToPath } from 'node:url';
import { constants } from 'node:zlib';

import compress from '@fastify/compress';
import files from '@fastify/static';
import view from '@fastify/view';
import websocket from '@fastify/websocket';
import { Eta } from 'eta';
import Fastify from 'fastify';
import { setTimeout as sleep } from 'node:timers/promises';

import { DatabaseUnavailable } from './database.js';
import { withTotals } from './items.js';
import { clamped, distinctIds, queryCount, randomNumberOtherThan, randomRow } from './random.js';

const VIEWS = fileURLToPath(new URL('views', import.meta.url));

// Fastify compiles serializers from response schemas.
const integer = { type: 'integer' };
const world = { type: 'object', properties: { id: integer, randomNumber: integer } };
const answers = (schema) => ({ schema: { response: { 200: schema } } });
const MESSAGE = answers({ type: 'object', properties: { message: { type: 'string' } } });
const WORLD = answers(world);
const WORLDS = answers({ type: 'array', items: world });
const string = { type: 'string' };
const item = {
  type: 'object',
  properties: {
    id: integer,
    name: string,
    category: string,
    price: integer,
    quantity: integer,
    active: { type: 'boolean' },
    tags: { type: 'array', items: string },
    rating: { type: 'object', properties: { score: integer, count: integer } },
    total: integer,
  },
};
const ITEMS = answers({ type: 'object', properties: { items: { type: 'array', items: item }, count: integer } });
// Node's default quality, 11, is too slow for dynamic responses.
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } };
const FAN_OUT = answers({ type: 'object', properties: { calls: integer, sum: integer } });

/** Creates the application. `items` is the data set, and `folder` contains the static files. Either may be missing. */
export async function createApp({ database, upstream, items, folder, ...options }) {
  const app = Fastify(options);
  await app.register(compress, { global: false });
  await app.register(view, { engine: { eta: new Eta({ views: VIEWS, cache: true }) }, root: VIEWS });

  // Node adds the Date header itself.
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('server', 'Fastify');
    done();
  });

  // Read GET requests to the end. Otherwise, if a response must wait for the client's HTTP/2 flow-control window, Node
  // resets the stream before the response has ended.
  if (options.http2) {
    app.addHook('onRequest', (request, reply, done) => {
      if (request.method === 'GET') request.raw.resume();
      done();
    });
  }

  app.get('/json', MESSAGE, (request, reply) => {
    reply.header('content-type', 'application/json').send({ message: 'Hello, World!' });
  });

  app.get('/plaintext', (request, reply) => {
    reply.header('content-type', 'text/plain').send('Hello, World!');
  });

  app.get('/db', WORLD, () => database.world(randomRow()));

  // Each row is read with a separate SELECT.
  app.get('/queries', WORLDS, (request) => {
    return database.worlds(Array.from({ length: queryCount(request.query.queries) }, randomRow));
  });

  app.get('/cached-queries', WORLDS, (request) => {
    return database.cachedWorlds(Array.from({ length: queryCount(request.query.count) }, randomRow));
  });

  // Reads, changes and writes each row. Distinct ascending ids prevent deadlocks between concurrent updates.
  app.get('/updates', WORLDS, async (request) => {
    const worlds = await database.worlds(distinctIds(queryCount(request.query.queries)));
    for (const world of worlds) world.randomNumber = randomNumberOtherThan(world.randomNumber);
    await database.update(worlds);
    return worlds;
  });

  app.get('/fortunes', async (request, reply) => {
    const fortunes = await database.fortunes();
    fortunes.push({ id: 0, message: 'Additional fortune added at request time.' });
    fortunes.sort((a, b) => (a.message < b.message ? -1 : 1));
    return reply.view('fortunes', { fortunes });
  });

  app.get('/delay', async (request, reply) => {
    const due = performance.now() + clamped(request.query.ms, 0, 1000, 0);
    // Node's timers use the event loop's millisecond clock, so they may fire up to a millisecond early.
    for (let left; (left = due - performance.now()) > 0; ) await sleep(Math.ceil(left));
    return reply.header('content-type', 'text/plain').send('Hello, World!');
  });

  app.get('/fan-out', FAN_OUT, async (request, reply) => {
    if (!upstream) return reply.code(503).send();
    const calls = clamped(request.query.calls, 1, 100, 1);
    return { calls, sum: await upstream.sum(calls) };
  });

  app.get('/json/:count', { ...ITEMS, compress: { brotliOptions: BROTLI } }, (request, reply) => {
    if (!items) return reply.code(503).send();
    const m = clamped(request.query.m, 1, Number.MAX_SAFE_INTEGER, 1);
    reply
      .header('content-type', 'application/json')
      .send(withTotals(items, clamped(request.params.count, 0, items.length, 0), m));
  });

  if (folder) await app.register(files, { root: folder, prefix: '/static/', preCompressed: true, index: false });

  // Pass the body as a stream, so that /upload counts bytes as they arrive.
  app.addContentTypeParser('application/octet-stream', (request, payload, done) => done(null, payload));
  app.post('/upload', async (request, reply) => {
    let bytes = 0;
    for await (const chunk of request.body) bytes += chunk.length;
    return reply.header('content-type', 'text/plain').send(`${bytes}`);
  });

  // In a scope of its own, the plugin adds its hooks only to this route. ws itself replies to pings and close frames.
  await app.register(async (scope) => {
    await scope.register(websocket);
    scope.get('/ws', { websocket: true }, (socket) => {
      socket.on('message', (message, isBinary) => socket.send(message, { binary: isBinary }));
    });
  });

  app.setErrorHandler((error, request, reply) => {
    if (!(error instanceof DatabaseUnavailable)) console.error(`${request.method} ${request.url}: ${error.stack}`);
    reply.code(error.statusCode ?? 500).send();
  });

  return app;
}
