// A worker's PostgreSQL connection pool. Prepared statements are pipelined, with a Sync message after each.
import postgres from 'postgres';

import { WORKERS, perWorker } from './workers.ts';

export interface World {
  id: number;
  randomNumber: number;
}

export interface Fortune {
  id: number;
  message: string;
}

// In total, across all workers, there are 8 connections per CPU.
const CONNECTIONS = 8 * WORKERS;

const sql = postgres({
  host: process.env.DBHOST || 'tfb-database',
  port: Number(process.env.DBPORT || 5432),
  database: process.env.DBNAME || 'hello_world',
  username: process.env.DBUSER || 'benchmarkdbuser',
  password: process.env.DBPASS || 'benchmarkdbpass',
  max: perWorker(CONNECTIONS),
  connect_timeout: 3,
  max_lifetime: null,
});
const cache = new Map<number, World>();

/** Reads each row with a separate SELECT. */
export function worlds(ids: number[]): Promise<World[]> {
  return Promise.all(
    ids.map(async (id) => {
      const [world] = await sql<World[]>`SELECT id, randomnumber AS "randomNumber" FROM world WHERE id = ${id}`;
      if (!world) throw new Error('no such row');
      return world;
    }),
  );
}

/** Returns rows from the cache. Rows that are not cached are read from the database first. */
export async function cachedWorlds(ids: number[]): Promise<World[]> {
  const missing = [...new Set(ids.filter((id) => !cache.has(id)))];
  for (const world of await worlds(missing)) cache.set(world.id, world);
  return ids.map((id) => cache.get(id)!);
}

/** Stores all numbers in a single statement, which locks the rows in the order of their ids. */
export async function updateWorlds(changed: World[]): Promise<void> {
  const ids = changed.map((world) => world.id);
  const numbers = changed.map((world) => world.randomNumber);
  await sql`
    UPDATE world SET randomnumber = new.randomnumber
    FROM unnest(${ids}::int[], ${numbers}::int[]) AS new (id, randomnumber) WHERE world.id = new.id`;
}

export function fortunes(): Promise<Fortune[]> {
  return sql<Fortune[]>`SELECT id, message FROM fortune`;
}

/** Closes idle connections at once and busy connections when their statements finish, after two seconds at most. */
export function closeDatabase(): Promise<void> {
  return sql.end({ timeout: 2 });
}
