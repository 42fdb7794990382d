// A worker: Fastify application, database connections and graceful shutdown.
import { readFileSync } from 'node:fs';
import http from 'node:http';
import process from 'node:process';

import { createApp } from './app.js';
import { Database } from './database.js';
import { readItems } from './items.js';
import { Upstream } from './upstream.js';

const HOST = process.env.HOST || '0.0.0.0';
const PORT = Number(process.env.PORT || 8080);
const HTTPS_PORT = Number(process.env.HTTPS_PORT || 0);
const H2C_PORT = Number(process.env.H2C_PORT || 0);
const BACKLOG = 4096;

/** Serves until SIGTERM, then exits within `graceMs`. */
export async function serve(graceMs) {
  const database = new Database();
  const upstream = process.env.UPSTREAM_URL ? new Upstream(process.env.UPSTREAM_URL) : null;

  const options = {
    database,
    upstream,
    items: readItems(),
    folder: process.env.STATIC_DIR,
    clientErrorHandler: refuse,
  };
  const servers = [[await createApp(options), PORT]];
  if (HTTPS_PORT) {
    // ALPN selects HTTP/2 or HTTP/1.1.
    const https = { allowHTTP1: true, ...certificate() };
    servers.push([await createApp({ ...options, http2: true, https }), HTTPS_PORT]);
  }
  if (H2C_PORT) servers.push([await createApp({ ...options, http2: true }), H2C_PORT]);
  for (const [app, port] of servers) {
    // Keep idle connections open until the client closes them. Fastify ignores 0 in its option keepAliveTimeout.
    app.server.keepAliveTimeout = 0;
    try {
      await app.listen({ host: HOST, port, backlog: BACKLOG });
    } catch (error) {
      console.error(`cannot listen on ${HOST}:${port}: ${error.message}`);
      process.exit(1);
    }
  }
  console.log(`worker ${process.pid} listens on ${HOST}:${PORT}, Node ${process.version}`);

  process.once('SIGTERM', async () => {
    setTimeout(() => process.exit(0), graceMs).unref();
    await Promise.all(servers.map(([app]) => app.close()));
    await Promise.all([database.close(), upstream?.close()]);
    process.exit(0);
  });
  // Ctrl-C signals the whole process group. Ignore the signal here, because the primary stops the workers.
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => {});
}

/** Reads the TLS certificate and key from the files $TLS_CERT and $TLS_KEY. */
function certificate() {
  return { cert: readFileSync(process.env.TLS_CERT), key: readFileSync(process.env.TLS_KEY) };
}

const REFUSALS = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 };

/** Responds to invalid or oversized requests with an error status and the common headers. */
function refuse(error, socket) {
  if (error.code === 'ECONNRESET' || !socket.writable) return socket.destroy();
  const status = REFUSALS[error.code] ?? 400;
  socket.end(
    `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n` +
      `Server: Fastify\r\nDate: ${new Date().toUTCString()}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
  );
}
