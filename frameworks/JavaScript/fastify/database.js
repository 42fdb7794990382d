// The worker's PostgreSQL connection pool, and the cache of /cached-queries.
import { LRUCache } from 'lru-cache';
import pg from 'pg';

import { ROWS } from './random.js';
import { WORKERS, perWorker } from './workers.js';

// In total, across all workers, there are 8 connections per CPU.
const CONNECTIONS = 8 * WORKERS;
const PATIENCE_MS = 5000;

// pg prepares a named statement only once per connection.
const SELECT_WORLD = { name: 'world', text: 'SELECT id, randomnumber AS "randomNumber" FROM world WHERE id = $1' };
// "World" is a copy of the table `world` that is never updated, so the rows can be cached.
const SELECT_CACHEABLE = {
  name: 'cacheable',
  text: 'SELECT id, randomnumber AS "randomNumber" FROM "World" WHERE id = $1',
};
const SELECT_FORTUNES = { name: 'fortunes', text: 'SELECT id, message FROM fortune' };
const UPDATE_WORLDS = {
  name: 'update',
  text:
    'UPDATE world SET randomnumber = new.randomnumber ' +
    'FROM unnest($1::int[], $2::int[]) AS new (id, randomnumber) WHERE world.id = new.id',
};

/** The error for a missing connection or a failed query. The framework responds with the error's `statusCode`. */
export class DatabaseUnavailable extends Error {
  statusCode = 503;
}

export class Database {
  #pool = new pg.Pool({
    host: process.env.DBHOST || 'tfb-database',
    port: Number(process.env.DBPORT || 5432),
    database: process.env.DBNAME || 'hello_world',
    user: process.env.DBUSER || 'benchmarkdbuser',
    password: process.env.DBPASS || 'benchmarkdbpass',
    max: perWorker(CONNECTIONS),
    // Pipeline a request's queries: send each query before the previous result arrives, with its own Sync message.
    pipeline: true,
    idleTimeoutMillis: 0, // keep idle connections, which hold prepared statements
    connectionTimeoutMillis: PATIENCE_MS,
  });
  #cache = new LRUCache({ max: ROWS, fetchMethod: (id) => this.#cacheableWorld(id) });

  constructor() {
    // Only log the error: the pool opens a new connection on demand.
    this.#pool.on('error', (error) => console.error(`lost a connection to PostgreSQL: ${error.message}`));
    // The pool handles errors only on idle connections. On a busy one, the query also fails, so ignore the error.
    this.#pool.on('connect', (client) => client.on('error', () => {}));
  }

  async world(id) {
    return only(await this.#run((pool) => pool.query({ ...SELECT_WORLD, values: [id] })));
  }

  /** Reads each row with a separate SELECT, all on the same connection. */
  worlds(ids) {
    return this.#run(async (pool) => {
      const client = await pool.connect();
      try {
        const results = await Promise.all(ids.map((id) => client.query({ ...SELECT_WORLD, values: [id] })));
        return results.map(only);
      } finally {
        client.release();
      }
    });
  }

  /** Stores the `randomNumber` of all worlds in a single statement. */
  async update(worlds) {
    const ids = worlds.map((world) => world.id);
    const numbers = worlds.map((world) => world.randomNumber);
    await this.#run((pool) => pool.query({ ...UPDATE_WORLDS, values: [ids, numbers] }));
  }

  /** Returns rows from the cache, after reading the missing rows from the database. */
  cachedWorlds(ids) {
    return Promise.all(ids.map((id) => this.#cache.get(id) ?? this.#cache.fetch(id)));
  }

  async fortunes() {
    const { rows } = await this.#run((pool) => pool.query(SELECT_FORTUNES));
    return rows;
  }

  close() {
    return this.#pool.end();
  }

  async #cacheableWorld(id) {
    return only(await this.#run((pool) => pool.query({ ...SELECT_CACHEABLE, values: [id] })));
  }

  async #run(work) {
    try {
      return await work(this.#pool);
    } catch (error) {
      if (error instanceof DatabaseUnavailable) throw error;
      throw new DatabaseUnavailable(error.message || error.code, { cause: error });
    }
  }
}

function only({ rows }) {
  if (rows.length === 0) throw new DatabaseUnavailable('no such row');
  return rows[0];
}
