// A worker: HTTP server, Express application, database connections and graceful shutdown.
import http from 'node:http';
import process from 'node:process';

import { createApp } from './app.js';
import { connectionPool } from './database.js';
import { Orders } from './orders.js';

const HOST = process.env.HOST || '0.0.0.0';
const PORT = Number(process.env.PORT || 8080);

const BACKLOG = 4096;

/** Serves until SIGTERM, then exits within `graceMs`. */
export function serve(graceMs) {
  const pool = connectionPool();
  const app = createApp(new Orders(pool));
  const server = http.createServer((req, res) => {
    res.setHeader('Server', 'Express');
    app(req, res);
  });
  // Keep idle connections open until the client closes them. By default, Node closes them after 5 s.
  server.keepAliveTimeout = 0;
  server.on('error', (error) => {
    console.error(`cannot listen on ${HOST}:${PORT}: ${error.message}`);
    process.exit(1);
  });
  server.listen({ port: PORT, host: HOST, backlog: BACKLOG }, () => {
    console.log(`worker ${process.pid} listens on ${HOST}:${PORT}, Node ${process.version}`);
  });

  process.once('SIGTERM', () => {
    setTimeout(() => process.exit(0), graceMs).unref();
    // Ask clients on busy connections to close them after the next response.
    server.prependListener('request', (req, res) => res.setHeader('Connection', 'close'));
    server.close(async () => {
      await pool.end();
      process.exit(0);
    });
  });
  // Ctrl-C signals the whole process group. Ignore the signal here, because the primary stops the workers.
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => {});
}
