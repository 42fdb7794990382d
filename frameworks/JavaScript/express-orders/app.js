// The Express application: the order routes and the middleware around them. Errors become RFC 9457 problem documents.
import { STATUS_CODES } from 'node:http';

import express from 'express';
import createError from 'http-errors';

import { ordersRouter } from './routes.js';

export function createApp(orders) {
  const app = express();
  // Orders change too often for ETags to match.
  app.disable('etag');
  app.disable('x-powered-by');
  app.use(express.json());
  app.use('/orders', ordersRouter(orders));
  app.use((req) => {
    throw createError(404, `There is no route ${req.method} ${req.path}`);
  });
  app.use(problem);
  return app;
}

// Express calls this function when a handler throws. The response is a problem document (RFC 9457). Errors without a
// status are database failures.
function problem(error, req, res, next) {
  const status = error.status ?? 503;
  if (status >= 500) complain(`${req.method} ${req.path}: ${error.message}`);
  if (res.headersSent) return next(error);
  const detail = status < 500 ? error.message : 'The database did not respond as expected';
  res.status(status).type('application/problem+json');
  res.json({ type: 'about:blank', title: STATUS_CODES[status], status, detail });
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
