// One worker: an HTTP server on the Express application, its database connection, and their orderly end.
import http from 'node:http';
import process from 'node:process';

import { createApp } from './app.js';
import { Database } from './database.js';
import { createUpstream } from './upstream.js';

const HOST = process.env.HOST || '0.0.0.0';
const PORT = Number(process.env.PORT || 8080);

const BACKLOG = 4096;

const REFUSALS = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 };

/** Serves until SIGTERM, then ends within `graceMs`. */
export async function serve(graceMs) {
  const database = new Database();
  await database.connect();

  const upstream = process.env.UPSTREAM_URL ? createUpstream(process.env.UPSTREAM_URL) : null;
  const app = createApp(database, upstream);
  const server = http.createServer((req, res) => {
    res.setHeader('Server', 'Express');
    app(req, res);
  });
  // Idle connections are kept until the client closes them; the default would close them after 5 s.
  server.keepAliveTimeout = 0;
  server.on('clientError', refuse);
  server.on('error', (error) => {
    console.error(`cannot listen on ${HOST}:${PORT}: ${error.message}`);
    process.exit(1);
  });
  server.listen({ port: PORT, host: HOST, backlog: BACKLOG }, () => {
    console.log(`worker ${process.pid} listens on ${HOST}:${PORT}, Node ${process.version}`);
  });

  process.once('SIGTERM', () => {
    setTimeout(() => process.exit(0), graceMs).unref();
    // A connection that is busy ends with the answer to its next request.
    server.prependListener('request', (req, res) => res.setHeader('Connection', 'close'));
    server.close(async () => {
      await Promise.all([database.close(), upstream?.close()]);
      process.exit(0);
    });
  });
  // What reaches the whole process group comes from the primary as well, or is the primary's to decide (Ctrl-C).
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => {});
}

/** Answers what isn't HTTP, or too much of it, as Node does itself but with the headers that every response carries. */
function refuse(error, socket) {
  if (error.code === 'ECONNRESET' || !socket.writable) return socket.destroy();
  const status = REFUSALS[error.code] ?? 400;
  socket.end(
    `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n` +
      `Server: Express\r\nDate: ${new Date().toUTCString()}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
  );
}
