// The Express application: the order routes, the middleware around them, and the conversion of errors to problems.
import { STATUS_CODES } from 'node:http';

import express from 'express';
import createError from 'http-errors';

import { ordersRouter } from './routes.js';

export function createApp(orders) {
  const app = express();
  // Disable ETags, because orders change so often that ETags would rarely match.
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

// Responds with a problem (RFC 9457). Express passes handlers' exceptions to this function. Exceptions without a status
// come from the database.
function problem(error, req, res, next) {
  const status = error.status ?? 503;
  if (status >= 500) complain(`${req.method} ${req.path}: ${error.message}`);
  if (res.headersSent) return next(error);
  const detail = status < 500 ? error.message : 'The database did not answer as expected';
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
