// A client for the upstream of /fan-out.
import pLimit from 'p-limit';

import { perWorker } from './workers.ts';

// The benchmark allows every implementation 256 upstream connections in total, across all workers. Bun and
// Deno open a connection for each concurrent call, and fetch has no limit that works on both.
const CONNECTIONS = 256;

const limit = pLimit(perWorker(CONNECTIONS));

async function value(url: string): Promise<number> {
  const response = await fetch(url);
  const number = Number(await response.text());
  if (!response.ok || !Number.isInteger(number)) throw new Error(`${url} responded with ${response.status}`);
  return number;
}

/** Makes the calls concurrently and returns the sum of their results. */
export async function sum(url: string, calls: number): Promise<number> {
  const values = await Promise.all(Array.from({ length: calls }, () => limit(value, url)));
  return values.reduce((total, each) => total + each, 0);
}
