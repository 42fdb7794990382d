// The worker's single PostgreSQL connection: pipelined prepared statements and automatic reconnection.
import { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

import pg from 'pg';

const RETRY_MS = 1000;

const settings = {
  host: process.env.DBHOST || 'tfb-database',
  port: Number(process.env.DBPORT || 5432),
  database: process.env.DBNAME || 'hello_world',
  user: process.env.DBUSER || 'benchmarkdbuser',
  password: process.env.DBPASS || 'benchmarkdbpass',
  // Queries are pipelined; each has a separate Bind, Execute and Sync.
  pipeline: true,
  connectionTimeoutMillis: 3000,
};

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

/** The error that queries throw while the database is disconnected. */
export class DatabaseUnreachable extends Error {}

function only({ rows }) {
  if (rows.length === 0) throw new Error('no such row');
  return rows[0];
}

export class Database {
  #client = null;
  #socket = null;
  #closing = false;

  /** Connects. If that fails, retries in the background, so json and plaintext work without a database. */
  async connect() {
    if (!(await this.#tryToConnect())) this.#keepTrying();
  }

  async world(id) {
    return only(await this.#query({ ...SELECT_WORLD, values: [id] }));
  }

  async cacheableWorld(id) {
    return only(await this.#query({ ...SELECT_CACHEABLE, values: [id] }));
  }

  async fortunes() {
    return (await this.#query(SELECT_FORTUNES)).rows;
  }

  /** Stores the `randomNumber` of all worlds in a single statement. */
  async update(worlds) {
    const ids = worlds.map((world) => world.id);
    const numbers = worlds.map((world) => world.randomNumber);
    await this.#query({ ...UPDATE_WORLDS, values: [ids, numbers] });
  }

  async close() {
    this.#closing = true;
    await this.#client?.end();
  }

  #query(query) {
    if (!this.#client) throw new DatabaseUnreachable('no connection to the database');
    this.#gather();
    return this.#client.query(query);
  }

  /** Batches all queries of an event-loop iteration into a single write to the socket. */
  #gather() {
    if (this.#socket.writableCorked) return;
    const socket = this.#socket;
    socket.cork();
    setImmediate(() => socket.uncork());
  }

  async #tryToConnect() {
    const socket = new Socket();
    const client = new pg.Client({ ...settings, stream: socket });
    client.on('error', (error) => console.error(`lost the connection to PostgreSQL: ${error.message}`));
    try {
      await client.connect();
    } catch (error) {
      console.error(`cannot reach PostgreSQL at ${settings.host}:${settings.port}: ${error.message || error.code}`);
      client.end().catch(() => {});
      return false;
    }
    client.once('end', () => {
      this.#client = null;
      if (!this.#closing) this.#keepTrying();
    });
    this.#client = client;
    this.#socket = socket;
    return true;
  }

  async #keepTrying() {
    do await sleep(RETRY_MS);
    while (!this.#closing && !(await this.#tryToConnect()));
  }
}
