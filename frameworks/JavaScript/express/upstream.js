// A client for the upstream of /fan-out, with persistent connections.
import { Pool } from 'undici';

const CONNECTIONS = 512;
const PATIENCE_MS = 5000;

/** Returns a client with a method `sum(calls)`, which makes the calls concurrently and returns a promise of the sum. */
export function createUpstream(url) {
  const { origin, pathname, search } = new URL(url);
  const pool = new Pool(origin, {
    connections: CONNECTIONS,
    connectTimeout: PATIENCE_MS,
    headersTimeout: PATIENCE_MS,
    bodyTimeout: PATIENCE_MS,
  });

  const call = async () => {
    const { statusCode, body } = await pool.request({ path: pathname + search, method: 'GET' });
    const text = await body.text();
    if (statusCode !== 200 || !/^\s*-?\d+\s*$/.test(text)) throw new Error(`the upstream responded with ${statusCode} ${text}`);
    return Number(text);
  };

  return {
    async sum(calls) {
      const numbers = await Promise.all(Array.from({ length: calls }, call));
      return numbers.reduce((sum, number) => sum + number, 0);
    },
    close: () => pool.destroy(),
  };
}
