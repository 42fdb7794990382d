// A server instance's single PostgreSQL connection, with pipelining, cached prepared statements and reconnection.
import { Tuple } from '@vertx/sql-client';

// npm has no package @vertx/pg-client.
const PgConnectOptions = Java.type('io.vertx.pgclient.PgConnectOptions');
const PgConnection = Java.type('io.vertx.pgclient.PgConnection');

const RETRY_MS = 1000;
// Queries are pipelined; each has a separate Bind, Execute and Sync.
const PIPELINING_LIMIT = 256;

const options = new PgConnectOptions()
  .setHost(process.env.DBHOST || 'tfb-database')
  .setPort(Number(process.env.DBPORT || 5432))
  .setDatabase(process.env.DBNAME || 'hello_world')
  .setUser(process.env.DBUSER || 'benchmarkdbuser')
  .setPassword(process.env.DBPASS || 'benchmarkdbpass')
  .setCachePreparedStatements(true)
  .setPipeliningLimit(PIPELINING_LIMIT);

const SELECT_WORLD = 'SELECT id, randomnumber FROM world WHERE id = $1';
// "World" is a copy of the table `world` that is never updated, so the rows can be cached.
const SELECT_CACHEABLE = 'SELECT id, randomnumber FROM "World" WHERE id = $1';
const SELECT_FORTUNES = 'SELECT id, message FROM fortune';
const UPDATE_WORLDS =
  'UPDATE world SET randomnumber = new.randomnumber ' +
  'FROM unnest($1::int[], $2::int[]) AS new (id, randomnumber) WHERE world.id = new.id';

/** The error passed to callbacks while the database is disconnected. */
const UNREACHABLE = 'no connection to the database';

export class Database {
  #statements = null;

  /** Connects. If that fails, retries in the background, so json and plaintext work without a database. */
  connect(done) {
    PgConnection.connect(vertx, options, (connected) => {
      if (connected.succeeded()) {
        this.#use(connected.result());
      } else {
        console.error(`cannot reach PostgreSQL at ${options.getHost()}:${options.getPort()}: ${connected.cause()}`);
        this.#reconnect();
      }
      done?.();
    });
  }

  /** Calls `done(error, worlds)` once with the worlds for `ids`, each read with a separate SELECT. */
  worlds(ids, done) {
    if (!this.#statements) return done(UNREACHABLE);
    this.#select(this.#statements.selectWorld, ids, done);
  }

  /** Like `worlds`, but reads from the table that is never updated. */
  cacheableWorlds(ids, done) {
    if (!this.#statements) return done(UNREACHABLE);
    this.#select(this.#statements.selectCacheable, ids, done);
  }

  #select(statement, ids, done) {
    const worlds = [];
    let missing = ids.length;
    let failure = null;
    // Results arrive in query order, so pushing them keeps the worlds in the order of `ids`.
    const collect = (selected) => {
      if (selected.succeeded() && selected.result().size() > 0) {
        const row = selected.result().iterator().next();
        worlds.push({ id: row.getInteger(0), randomNumber: row.getInteger(1) });
      } else {
        failure ??= selected.cause() ?? 'no such row';
      }
      if (--missing === 0) done(failure, worlds);
    };
    for (const id of ids) statement.execute(Tuple.of(id), collect);
  }

  /** Calls `done(error, fortunes)` with all fortunes. */
  fortunes(done) {
    if (!this.#statements) return done(UNREACHABLE);
    this.#statements.selectFortunes.execute((selected) => {
      if (selected.failed()) return done(selected.cause());
      const fortunes = [];
      for (const row of selected.result()) fortunes.push({ id: row.getInteger(0), message: row.getString(1) });
      done(null, fortunes);
    });
  }

  /** Stores the `randomNumber` of all worlds in a single statement, then calls `done(error)`. */
  update(worlds, done) {
    if (!this.#statements) return done(UNREACHABLE);
    const parameters = Tuple.tuple()
      .addArrayOfInteger(worlds.map((world) => world.id))
      .addArrayOfInteger(worlds.map((world) => world.randomNumber));
    this.#statements.updateWorlds.execute(parameters, (updated) => done(updated.failed() ? updated.cause() : null));
  }

  #use(connection) {
    connection.closeHandler(() => {
      console.error('lost the connection to PostgreSQL');
      this.#statements = null;
      this.#reconnect();
    });
    this.#statements = {
      selectWorld: connection.preparedQuery(SELECT_WORLD),
      selectCacheable: connection.preparedQuery(SELECT_CACHEABLE),
      selectFortunes: connection.preparedQuery(SELECT_FORTUNES),
      updateWorlds: connection.preparedQuery(UPDATE_WORLDS),
    };
  }

  #reconnect() {
    setTimeout(() => this.connect(), RETRY_MS);
  }
}
