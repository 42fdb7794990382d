// A client for the upstream of /fan-out.
import { request } from 'undici';

/** The error for a failed upstream call. Fastify responds with the error's `statusCode`. */
class UpstreamFailed extends Error {
  statusCode = 502;
}

export class Upstream {
  #url;

  constructor(url) {
    this.#url = url;
  }

  /** Makes the calls concurrently and returns the sum of their results. */
  async sum(calls) {
    const values = await Promise.all(Array.from({ length: calls }, () => this.#value()));
    return values.reduce((sum, value) => sum + value, 0);
  }

  async #value() {
    try {
      const { statusCode, body } = await request(this.#url);
      const value = Number(await body.text());
      if (statusCode !== 200 || !Number.isInteger(value)) throw new Error(`it responded with ${statusCode}`);
      return value;
    } catch (error) {
      throw new UpstreamFailed(`${this.#url}: ${error.message}`, { cause: error });
    }
  }
}
