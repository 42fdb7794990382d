// The worker's connections to PostgreSQL, and transactions on them.
import { availableParallelism } from 'node:os';

import pg from 'pg';

// Of all workers together.
const CONNECTIONS = 16;
const PATIENCE_MS = 5000;

// Identities count from 1: a JavaScript number is exact for the first 9,007,199,254,740,991 of them.
pg.types.setTypeParser(pg.types.builtins.INT8, Number);

export function connectionPool() {
  const pool = new pg.Pool({
    host: process.env.DBHOST || 'tfb-database',
    port: Number(process.env.DBPORT || 5432),
    database: process.env.DBNAME || 'hello_world',
    user: process.env.DBUSER || 'benchmarkdbuser',
    password: process.env.DBPASS || 'benchmarkdbpass',
    max: Math.ceil(CONNECTIONS / availableParallelism()),
    idleTimeoutMillis: 0,
    connectionTimeoutMillis: PATIENCE_MS,
  });
  // The pool opens another when it is needed.
  pool.on('error', (error) => console.error(`lost a connection to PostgreSQL: ${error.message}`));
  // The pool listens to idle ones only; of one that is lost at work its query says so.
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

/** What `work` returns, once all that it did by the client is committed; nothing of it is kept when it throws. */
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
    // A client that could not roll back is closed.
    client.release(broken);
  }
}
