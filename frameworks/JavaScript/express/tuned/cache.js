// A cache of rows from a table that is never updated, so cached rows never become stale.
import { LRUCache } from 'lru-cache';

import { ROWS } from '../random.js';

export function createWorldCache(database) {
  const cache = new LRUCache({ max: ROWS });

  const read = async (id) => {
    const world = await database.cacheableWorld(id);
    cache.set(id, world);
    return world;
  };

  /** Returns the rows with these ids, or a promise of the rows if some are not cached. */
  return (ids) => {
    const worlds = ids.map((id) => cache.get(id) ?? read(id));
    return worlds.some((world) => world instanceof Promise) ? Promise.all(worlds) : worlds;
  };
}
