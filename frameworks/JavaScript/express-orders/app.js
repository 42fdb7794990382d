// The Express application: what comes before and after the routes of orders, and the problem that each error becomes.
import { STATUS_CODES } from 'node:http';

import express from 'express';
import createError from 'http-errors';

import { ordersRouter } from './routes.js';

export function createApp(orders) {
  const app = express();
  // Orders change: an answer's hash would be computed and never found again.
  app.disable('etag');
  app.disable('x-powered-by');
  app.use(express.json());
  app.use('/orders', ordersRouter(orders));
  app.use((req) => {
    throw createError(404, `Nothing is at ${req.method} ${req.path}`);
  });
  app.use(problem);
  return app;
}

/** RFC 9457. Express passes what a handler throws to here: without a status it comes from the database. */
function problem(error, req, res, next) {
  const status = error.status ?? 503;
  if (status >= 500) complain(`${req.method} ${req.path}: ${error.message}`);
  if (res.headersSent) return next(error);
  const detail = status < 500 ? error.message : 'The database did not answer as expected';
  res.status(status).type('application/problem+json');
  res.json({ type: 'about:blank', title: STATUS_CODES[status], status, detail });
}

/** Logs one failure a second at most: there may be as many as requests. */
const complain = (() => {
  let quietUntil = 0;
  return (message) => {
    if (Date.now() < quietUntil) return;
    quietUntil = Date.now() + 1000;
    console.error(message);
  };
})();
