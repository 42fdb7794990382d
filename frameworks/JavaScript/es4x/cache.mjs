// Rows that are kept once read; they are of a table that no test writes to, so that none becomes stale.
import { LRUCache } from './node_modules/lru-cache/dist/esm/browser/index.min.js';

import { ROWS } from './random.mjs';

export class WorldCache {
  #cache = new LRUCache({ max: ROWS });
  #database;

  constructor(database) {
    this.#database = database;
  }

  /** The worlds of some ids: `done(error, worlds)`. Those that are not in the cache are read first. */
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
