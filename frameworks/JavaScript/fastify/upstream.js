// A client for the upstream of /fan-out, with persistent connections.
import { Pool } from 'undici';

import { perWorker } from './workers.js';

// The benchmark allows every implementation 256 upstream connections in total, across all workers.
const CONNECTIONS = 256;
const PATIENCE_MS = 5000;

/** The error for a failed upstream call. The framework responds with the error's `statusCode`. */
class UpstreamFailed extends Error {
  statusCode = 502;
}

export class Upstream {
  #pool;
  #path;

  constructor(url) {
    const { origin, pathname, search } = new URL(url);
    this.#path = pathname + search;
    this.#pool = new Pool(origin, {
      connections: perWorker(CONNECTIONS),
      connectTimeout: PATIENCE_MS,
      headersTimeout: PATIENCE_MS,
      bodyTimeout: PATIENCE_MS,
    });
  }

  /** Makes the calls concurrently and returns the sum of their results. */
  async sum(calls) {
    const values = await Promise.all(Array.from({ length: calls }, () => this.#value()));
    return values.reduce((sum, value) => sum + value, 0);
  }

  close() {
    return this.#pool.destroy();
  }

  async #value() {
    try {
      const { statusCode, body } = await this.#pool.request({ path: this.#path, method: 'GET' });
      const text = await body.text();
      if (statusCode !== 200 || !/^\s*-?\d+\s*$/.test(text)) throw new Error(`received ${statusCode} ${text}`);
      return Number(text);
    } catch (error) {
      throw new UpstreamFailed(`upstream call failed: ${error.message}`, { cause: error });
    }
  }
}
