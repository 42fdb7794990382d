// A client for the upstream of /fan-out, with persistent connections.
import { WebClient } from '@vertx/web-client';
import { WebClientOptions } from '@vertx/web-client/options.mjs';
import { BodyCodec } from '@vertx/web-common';

const Runtime = Java.type('java.lang.Runtime');

// As in all implementations, at most 256 connections to the upstream. The instances, one per CPU, get equal shares.
const CONNECTIONS = Math.max(1, Math.floor(256 / Runtime.getRuntime().availableProcessors()));
const PATIENCE_MS = 5000;

export class Upstream {
  #request;

  constructor(url) {
    const options = new WebClientOptions().setMaxPoolSize(CONNECTIONS).setUserAgentEnabled(false);
    this.#request = WebClient.create(vertx, options).getAbs(url).timeout(PATIENCE_MS).as(BodyCodec.string());
  }

  /** Makes the calls concurrently, then calls `done(error, sum)` once. */
  sum(calls, done) {
    let sum = 0;
    let missing = calls;
    let failure = null;
    const collect = (answered) => {
      try {
        sum += number(answered);
      } catch (error) {
        failure ??= error;
      }
      if (--missing === 0) done(failure, sum);
    };
    for (let call = 0; call < calls; call++) this.#request.send(collect);
  }
}

function number(answered) {
  if (answered.failed()) throw new Error(String(answered.cause()));
  const answer = answered.result();
  const text = String(answer.body()).trim();
  if (answer.statusCode() !== 200 || !/^-?\d+$/.test(text)) {
    throw new Error(`the upstream responded with ${answer.statusCode()} ${text}`);
  }
  return Number(text);
}
