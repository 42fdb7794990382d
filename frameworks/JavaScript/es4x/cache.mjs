// A cache of rows from a table that is never updated, so cached rows never become stale.
import { LRUCache } from 'lru-cache/dist/esm/browser/index.min.js';

import { ROWS } from './random.mjs';

export class WorldCache {
  #cache = new LRUCache({ max: ROWS });
  #database;

  constructor(database) {
    this.#database = database;
  }

  /** Calls `done(error, worlds)` with the worlds for `ids`. Missing worlds are first read from the database. */
  worlds(ids, done) {
    const worlds = ids.map((id) => this.#cache.get(id));
    const missing = ids.filter((id, index) => worlds[index] === undefined);
    if (missing.length === 0) return done(null, worlds);
    this.#database.cacheableWorlds(missing, (error, read) => {
      if (error) return done(error);
      for (const world of read) this.#cache.set(world.id, world);
      let next = 0;
      done(null, worlds.map((world) => world ?? read[next++]));
    });
  }
}
