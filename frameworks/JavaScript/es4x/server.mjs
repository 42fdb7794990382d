// One server on the event loop of its verticle's instance: the six tests' routes and the headers of every response.
import { Eta } from './node_modules/eta/dist/core.js';

import { Database, UNREACHABLE } from './database.mjs';
import { distinctIds, queryCount, randomNumberOtherThan, randomRow } from './random.mjs';

const HttpHeaders = Java.type('io.vertx.core.http.HttpHeaders');
const HttpMethod = Java.type('io.vertx.core.http.HttpMethod');
const HttpServerOptions = Java.type('io.vertx.core.http.HttpServerOptions');
const HttpServerRequest = Java.type('io.vertx.core.http.HttpServerRequest');
const Router = Java.type('io.vertx.ext.web.Router');
const Runtime = Java.type('java.lang.Runtime');

const HOST = process.env.HOST || '0.0.0.0';
const PORT = Number(process.env.PORT || 8080);

const { CONTENT_TYPE, DATE, SERVER } = HttpHeaders;
const ES4X = HttpHeaders.createOptimized('ES4X');
const APPLICATION_JSON = HttpHeaders.createOptimized('application/json');
const TEXT_PLAIN = HttpHeaders.createOptimized('text/plain');
const TEXT_HTML = HttpHeaders.createOptimized('text/html; charset=utf-8');

let date;
const refreshDate = () => {
  date = HttpHeaders.createOptimized(new Date().toUTCString());
};
refreshDate();
setInterval(refreshDate, 1000);

const database = new Database();
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
  const ids = Array.from({ length: requestedCount(ctx) }, randomRow);
  database.worlds(ids, (error, worlds) => {
    if (error) return fail(ctx, error);
    send(ctx, APPLICATION_JSON, JSON.stringify(worlds));
  });
});

// Read each row, change it, write it; ids are distinct and ascending, so that concurrent updates can't deadlock.
get('/updates').handler((ctx) => {
  database.worlds(distinctIds(requestedCount(ctx)), (error, worlds) => {
    if (error) return fail(ctx, error);
    for (const world of worlds) world.randomNumber = randomNumberOtherThan(world.randomNumber);
    database.update(worlds, (error) => {
      if (error) return fail(ctx, error);
      send(ctx, APPLICATION_JSON, JSON.stringify(worlds));
    });
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
    ctx.response().setStatusCode(status);
    send(ctx, TEXT_PLAIN, ctx.response().getStatusMessage());
  });
}

const server = vertx
  .createHttpServer(new HttpServerOptions().setHost(HOST).setPort(PORT))
  .requestHandler(router)
  // What the HTTP decoder refuses: the same answer as without a handler, with the headers.
  .invalidRequestHandler((request) => {
    addHeaders(request.response(), TEXT_PLAIN);
    HttpServerRequest.DEFAULT_INVALID_REQUEST_HANDLER.handle(request);
  });

database.connect(() => {
  server.listen((listening) => {
    if (listening.succeeded()) {
      console.log(`listens on ${HOST}:${PORT}`);
    } else {
      console.error(`cannot listen on ${HOST}:${PORT}: ${listening.cause()}`);
      Runtime.getRuntime().halt(1);
    }
  });
});

function requestedCount(ctx) {
  try {
    return queryCount(ctx.request().getParam('queries'));
  } catch {
    return queryCount(null); // a query string that can't be decoded
  }
}

function send(ctx, contentType, body) {
  const response = ctx.response();
  addHeaders(response, contentType);
  response.end(body);
}

function addHeaders(response, contentType) {
  response.headers().add(SERVER, ES4X).add(DATE, date).add(CONTENT_TYPE, contentType);
}

function fail(ctx, error) {
  if (error !== UNREACHABLE) console.error(`${ctx.request().uri()}: ${error}`);
  ctx.response().setStatusCode(500);
  send(ctx, TEXT_PLAIN, 'Internal Server Error');
}
