// The worker's PostgreSQL connection pool, and transactions.
import pg from 'pg';

import { WORKERS, perWorker } from './workers.js';

// In total, across all workers, there are 8 connections per CPU.
const CONNECTIONS = 8 * WORKERS;
const PATIENCE_MS = 5000;

// Read bigint ids as numbers: ids start at 1, and numbers are exact up to 9,007,199,254,740,991.
pg.types.setTypeParser(pg.types.builtins.INT8, Number);

export function connectionPool() {
  const pool = new pg.Pool({
    host: process.env.DBHOST || 'tfb-database',
    port: Number(process.env.DBPORT || 5432),
    database: process.env.DBNAME || 'hello_world',
    user: process.env.DBUSER || 'benchmarkdbuser',
    password: process.env.DBPASS || 'benchmarkdbpass',
    max: perWorker(CONNECTIONS),
    idleTimeoutMillis: 0,
    connectionTimeoutMillis: PATIENCE_MS,
  });
  // Only log the error: the pool opens a new connection on demand.
  pool.on('error', (error) => console.error(`lost a connection to PostgreSQL: ${error.message}`));
  // The pool handles errors only on idle connections. On a busy one, the query also fails, so ignore the error.
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

/** Runs `work` in a transaction and returns the result. The transaction is rolled back if `work` throws. */
export async function transaction(pool, work) {
  const client = await pool.connect();
  let broken;
  try {
    await client.query('BEGIN');
    const result = await work(client);
    await client.query('COMMIT');
    return result;
  } catch (error) {
    await client.query('ROLLBACK').catch((failure) => (broken = failure));
    throw error;
  } finally {
    // If the rollback failed, the client is closed instead of being returned to the pool.
    client.release(broken);
  }
}
