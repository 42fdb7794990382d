// The HTTP server of a verticle instance, with a route for each test. Each instance runs on a separate event loop.
import { HttpHeaders, HttpServerRequest } from '@vertx/core';
import { HttpMethod, HttpServerOptions, PemKeyCertOptions } from '@vertx/core/options.mjs';
import { Router, StaticHandler } from '@vertx/web';
import { FileSystemAccess } from '@vertx/web/enums.mjs';

import { WorldCache } from './cache.mjs';
import { Database } from './database.mjs';
import { readItems, withTotals } from './items.mjs';
import { fortunesPage } from './page.mjs';
import { distinctIds, integer, randomNumberOtherThan, randomRow, rowCount } from './random.mjs';
import { Upstream } from './upstream.mjs';

const Runtime = Java.type('java.lang.Runtime');

const HOST = process.env.HOST || '0.0.0.0';
const PORT = Number(process.env.PORT || 8080);

const HTTPS_PORT = Number(process.env.HTTPS_PORT || 0);
const H2C_PORT = Number(process.env.H2C_PORT || 0);

const BACKLOG = 4096;
const FILE_MS = 500; // how long a file's size and modification time are cached
const PATIENCE_MS = 3000; // how long to wait for the database before listening without it
const MAX_DELAY_MS = 1000;
const MAX_CALLS = 100;

const { ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, DATE, IDENTITY, LAST_MODIFIED, SERVER, VARY } = HttpHeaders;
const ES4X = HttpHeaders.createOptimized('ES4X');
const APPLICATION_JSON = HttpHeaders.createOptimized('application/json');
const TEXT_PLAIN = HttpHeaders.createOptimized('text/plain');
const TEXT_HTML = HttpHeaders.createOptimized('text/html; charset=utf-8');

let date;
let failureLogged;
const eachSecond = () => {
  date = HttpHeaders.createOptimized(new Date().toUTCString());
  failureLogged = false;
};
eachSecond();
setInterval(eachSecond, 1000);

const database = new Database();
const cache = new WorldCache(database);
const upstream = process.env.UPSTREAM_URL ? new Upstream(process.env.UPSTREAM_URL) : null;
const router = Router.router(vertx);
const get = (path) => router.get(path).method(HttpMethod.HEAD);

get('/json').handler((ctx) => {
  send(ctx, APPLICATION_JSON, JSON.stringify({ message: 'Hello, World!' }));
});

get('/plaintext').handler((ctx) => {
  send(ctx, TEXT_PLAIN, 'Hello, World!');
});

get('/db').handler((ctx) => {
  database.worlds([randomRow()], (error, worlds) => {
    if (error) return fail(ctx, error);
    send(ctx, APPLICATION_JSON, JSON.stringify(worlds[0]));
  });
});

get('/queries').handler((ctx) => {
  const ids = Array.from({ length: rows(ctx, 'queries') }, randomRow);
  database.worlds(ids, (error, worlds) => {
    if (error) return fail(ctx, error);
    send(ctx, APPLICATION_JSON, JSON.stringify(worlds));
  });
});

// Reads, changes and writes each row. Distinct ascending ids prevent deadlocks between concurrent updates.
get('/updates').handler((ctx) => {
  database.worlds(distinctIds(rows(ctx, 'queries')), (error, worlds) => {
    if (error) return fail(ctx, error);
    for (const world of worlds) world.randomNumber = randomNumberOtherThan(world.randomNumber);
    database.update(worlds, (error) => {
      if (error) return fail(ctx, error);
      send(ctx, APPLICATION_JSON, JSON.stringify(worlds));
    });
  });
});

get('/cached-queries').handler((ctx) => {
  const ids = Array.from({ length: rows(ctx, 'count') }, randomRow);
  cache.worlds(ids, (error, worlds) => {
    if (error) return fail(ctx, error);
    send(ctx, APPLICATION_JSON, JSON.stringify(worlds));
  });
});

get('/delay').handler((ctx) => {
  const ms = integer(parameter(ctx, 'ms'), { absent: 0, least: 0, most: MAX_DELAY_MS });
  const answer = () => send(ctx, TEXT_PLAIN, 'Hello, World!');
  if (ms === 0) answer();
  else setTimeout(answer, ms);
});

get('/fan-out').handler((ctx) => {
  if (!upstream) return sendStatus(ctx, 503);
  const calls = integer(parameter(ctx, 'calls'), { absent: 1, least: 1, most: MAX_CALLS });
  upstream.sum(calls, (error, sum) => {
    if (error) return fail(ctx, error, 502);
    send(ctx, APPLICATION_JSON, JSON.stringify({ calls, sum }));
  });
});

const items = readItems();
get('/json/:count').handler((ctx) => {
  if (!items) return sendStatus(ctx, 503);
  const count = integer(ctx.pathParam('count'), { absent: 0, least: 0, most: items.length });
  const m = integer(parameter(ctx, 'm'), { absent: 1, least: 1, most: 1_000_000 });
  ctx.response().headers().add(VARY, ACCEPT_ENCODING);
  send(ctx, APPLICATION_JSON, JSON.stringify(withTotals(items, count, m)));
});

// Counts the bytes as they arrive instead of buffering the body.
router.post('/upload').handler((ctx) => {
  let bytes = 0;
  ctx
    .request()
    .handler((buffer) => {
      bytes += buffer.length();
    })
    .endHandler(() => send(ctx, TEXT_PLAIN, `${bytes}`));
});

// Echoes each message. Vert.x itself replies to pings and close frames.
router.get('/ws').handler((ctx) => {
  ctx.request().toWebSocket((upgraded) => {
    if (upgraded.succeeded()) {
      const socket = upgraded.result();
      socket.textMessageHandler((text) => socket.writeTextMessage(text));
      socket.binaryMessageHandler((data) => socket.writeBinaryMessage(data));
    } else if (!ctx.response().ended()) {
      sendStatus(ctx, 426);
    }
  });
});

// Writes days with two digits, as RFC 9110 requires. The static handler writes "Tue, 1 Dec 2026".
const correctDates = (headers) => {
  headers.set(DATE, date);
  const modified = headers.get(LAST_MODIFIED);
  if (modified) headers.set(LAST_MODIFIED, modified.replace(/, (?=\d )/, ', 0'));
};

if (process.env.STATIC_DIR) {
  get('/static/*')
    .handler((ctx) => {
      const headers = ctx.response().headers().add(SERVER, ES4X);
      // If compression is enabled, this header prevents Vert.x from compressing the file for each response.
      if (items) headers.add(CONTENT_ENCODING, IDENTITY);
      ctx.addHeadersEndHandler(() => correctDates(headers));
      ctx.next();
    })
    .handler(
      StaticHandler.create(FileSystemAccess.ROOT, process.env.STATIC_DIR)
        .setFilesReadOnly(false)
        .setCacheEntryTimeout(FILE_MS),
    );
}

get('/fortunes').handler((ctx) => {
  database.fortunes((error, fortunes) => {
    if (error) return fail(ctx, error);
    fortunes.push({ id: 0, message: 'Additional fortune added at request time.' });
    fortunes.sort((a, b) => (a.message < b.message ? -1 : 1));
    send(ctx, TEXT_HTML, fortunesPage(fortunes));
  });
});

// Responses to undecodable paths (400), unknown paths (404), wrong methods (405) and exceptions in handlers (500).
for (const status of [400, 404, 405, 500]) {
  router.errorHandler(status, (ctx) => {
    if (ctx.failure()) console.error(`${ctx.request().uri()}: ${ctx.failure()}`);
    sendStatus(ctx, status);
  });
}

/** Returns server options. Compression costs a handler per connection, so it is enabled only with a data set. */
const options = (port) =>
  new HttpServerOptions().setHost(HOST).setPort(port).setAcceptBacklog(BACKLOG).setCompressionSupported(items !== null);

function listenOn(port, serverOptions) {
  vertx
    .createHttpServer(serverOptions)
    .requestHandler(router)
    // Add the common headers to the default response for requests that the HTTP decoder rejects.
    .invalidRequestHandler((request) => {
      addHeaders(request.response(), TEXT_PLAIN);
      HttpServerRequest.DEFAULT_INVALID_REQUEST_HANDLER.handle(request);
    })
    .listen((listening) => {
      if (listening.succeeded()) {
        console.log(`listens on ${HOST}:${port}`);
      } else {
        console.error(`cannot listen on ${HOST}:${port}: ${listening.cause()}`);
        Runtime.getRuntime().halt(1);
      }
    });
}

let asked = false;
const listen = () => {
  if (asked) return;
  asked = true;
  if (HTTPS_PORT) {
    const certificate = new PemKeyCertOptions().setCertPath(process.env.TLS_CERT).setKeyPath(process.env.TLS_KEY);
    listenOn(HTTPS_PORT, options(HTTPS_PORT).setSsl(true).setUseAlpn(true).setKeyCertOptions(certificate));
  }
  if (H2C_PORT) listenOn(H2C_PORT, options(H2C_PORT));
  listenOn(PORT, options(PORT));
};
database.connect(listen);
setTimeout(listen, PATIENCE_MS);

/** Returns a query parameter, or null if it is missing. */
function parameter(ctx, name) {
  try {
    return ctx.request().getParam(name);
  } catch {
    return null; // undecodable query string
  }
}

function rows(ctx, name) {
  return rowCount(parameter(ctx, name));
}

function send(ctx, contentType, body) {
  const response = ctx.response();
  addHeaders(response, contentType);
  response.end(body);
}

function addHeaders(response, contentType) {
  response.headers().add(SERVER, ES4X).add(DATE, date).add(CONTENT_TYPE, contentType);
}

/** Responds with an error status and logs the error, at most one line per second. */
function fail(ctx, error, status = 503) {
  if (!failureLogged) console.error(`${ctx.request().path()}: ${error}`);
  failureLogged = true;
  sendStatus(ctx, status);
}

function sendStatus(ctx, status) {
  ctx.response().setStatusCode(status);
  send(ctx, TEXT_PLAIN, ctx.response().getStatusMessage());
}
