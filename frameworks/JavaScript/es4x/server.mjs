// One server on the event loop of its verticle's instance: the tests' routes and the headers of every response.
import { Eta } from './node_modules/eta/dist/core.js';

import { WorldCache } from './cache.mjs';
import { Database } from './database.mjs';
import { distinctIds, integer, randomNumberOtherThan, randomRow, rowCount } from './random.mjs';
import { Upstream } from './upstream.mjs';

const HttpHeaders = Java.type('io.vertx.core.http.HttpHeaders');
const HttpMethod = Java.type('io.vertx.core.http.HttpMethod');
const HttpServerOptions = Java.type('io.vertx.core.http.HttpServerOptions');
const HttpServerRequest = Java.type('io.vertx.core.http.HttpServerRequest');
const Router = Java.type('io.vertx.ext.web.Router');
const Runtime = Java.type('java.lang.Runtime');

const HOST = process.env.HOST || '0.0.0.0';
const PORT = Number(process.env.PORT || 8080);

const BACKLOG = 4096;
const PATIENCE_MS = 3000; // a database that says nothing keeps nobody from an answer
const MAX_DELAY_MS = 1000;
const MAX_CALLS = 100;

const { CONTENT_TYPE, DATE, SERVER } = HttpHeaders;
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

// Read each row, change it, write it; ids are distinct and ascending, so that concurrent updates can't deadlock.
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

const eta = new Eta();
const fortunesPage = eta.compile(String(vertx.fileSystem().readFileBlocking('views/fortunes.eta')));

get('/fortunes').handler((ctx) => {
  database.fortunes((error, fortunes) => {
    if (error) return fail(ctx, error);
    fortunes.push({ id: 0, message: 'Additional fortune added at request time.' });
    fortunes.sort((a, b) => (a.message < b.message ? -1 : 1));
    send(ctx, TEXT_HTML, eta.render(fortunesPage, { fortunes }));
  });
});

// What the router answers of its own accord: an undecodable path, an unknown one, another method, a handler that throws.
for (const status of [400, 404, 405, 500]) {
  router.errorHandler(status, (ctx) => {
    if (ctx.failure()) console.error(`${ctx.request().uri()}: ${ctx.failure()}`);
    sendStatus(ctx, status);
  });
}

const server = vertx
  .createHttpServer(new HttpServerOptions().setHost(HOST).setPort(PORT).setAcceptBacklog(BACKLOG))
  .requestHandler(router)
  // What the HTTP decoder refuses: the same answer as without a handler, with the headers.
  .invalidRequestHandler((request) => {
    addHeaders(request.response(), TEXT_PLAIN);
    HttpServerRequest.DEFAULT_INVALID_REQUEST_HANDLER.handle(request);
  });

let asked = false;
const listen = () => {
  if (asked) return;
  asked = true;
  server.listen((listening) => {
    if (listening.succeeded()) {
      console.log(`listens on ${HOST}:${PORT}`);
    } else {
      console.error(`cannot listen on ${HOST}:${PORT}: ${listening.cause()}`);
      Runtime.getRuntime().halt(1);
    }
  });
};
database.connect(listen);
setTimeout(listen, PATIENCE_MS);

/** A parameter of the query string, or null. */
function parameter(ctx, name) {
  try {
    return ctx.request().getParam(name);
  } catch {
    return null; // a query string that can't be decoded
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

/** Answers that what the request needs isn't there, and logs one line a second of it. */
function fail(ctx, error, status = 503) {
  if (!failureLogged) console.error(`${ctx.request().path()}: ${error}`);
  failureLogged = true;
  sendStatus(ctx, status);
}

function sendStatus(ctx, status) {
  ctx.response().setStatusCode(status);
  send(ctx, TEXT_PLAIN, ctx.response().getStatusMessage());
}
