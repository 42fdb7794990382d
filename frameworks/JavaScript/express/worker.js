// A worker: HTTP server, Express application, database connections and graceful shutdown.
import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import process from 'node:process';

import { readItems } from './items.js';
import { Upstream } from './upstream.js';
import { echoMessages } from './websocket.js';

const HOST = process.env.HOST || '0.0.0.0';
const PORT = Number(process.env.PORT || 8080);
const HTTPS_PORT = Number(process.env.HTTPS_PORT || 0);

const BACKLOG = 4096;

// The argument `tuned` selects the variant express-tuned.
const TUNED = process.argv[2] === 'tuned';
const { createApp } = await import(TUNED ? './tuned/app.js' : './app.js');
const { Database } = await import(TUNED ? './tuned/connection.js' : './database.js');

const REFUSALS = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 };

/** Serves until SIGTERM, then exits within `graceMs`. */
export async function serve(graceMs) {
  const database = new Database();
  await database.connect?.(); // a pool connects on demand
  const upstream = process.env.UPSTREAM_URL ? new Upstream(process.env.UPSTREAM_URL) : null;
  const app = createApp(database, upstream, { items: readItems(), folder: process.env.STATIC_DIR });
  const servers = [[http.createServer(app), PORT]];
  if (HTTPS_PORT) {
    const certificate = { cert: readFileSync(process.env.TLS_CERT), key: readFileSync(process.env.TLS_KEY) };
    servers.push([https.createServer(certificate, app), HTTPS_PORT]);
  }
  const webSockets = [];
  for (const [server, port] of servers) {
    // Keep idle connections open until the client closes them. By default, Node closes them after 5 s.
    server.keepAliveTimeout = 0;
    server.on('clientError', refuse);
    server.on('error', (error) => {
      console.error(`cannot listen on ${HOST}:${port}: ${error.message}`);
      process.exit(1);
    });
    server.listen({ port, host: HOST, backlog: BACKLOG }, () => {
      console.log(`worker ${process.pid} listens on ${HOST}:${port}, Node ${process.version}`);
    });
    webSockets.push(echoMessages(server));
  }

  process.once('SIGTERM', async () => {
    setTimeout(() => process.exit(0), graceMs).unref();
    for (const { clients } of webSockets) clients.forEach((client) => client.close(1001));
    const closed = servers.map(([server]) => {
      // Ask clients on busy connections to close them after the next response.
      server.prependListener('request', (req, res) => res.setHeader('Connection', 'close'));
      return new Promise((resolve) => server.close(resolve));
    });
    await Promise.all(closed);
    await Promise.all([database.close(), upstream?.close()]);
    process.exit(0);
  });
  // Ctrl-C signals the whole process group. Ignore the signal here, because the primary stops the workers.
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => {});
}

/** Responds to invalid or oversized requests with Node's default status, but adds the common headers. */
function refuse(error, socket) {
  if (error.code === 'ECONNRESET' || !socket.writable) return socket.destroy();
  const status = REFUSALS[error.code] ?? 400;
  socket.end(
    `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n` +
      `Server: Express\r\nDate: ${new Date().toUTCString()}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
  );
}
