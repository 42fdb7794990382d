// A server whose cost per request is known: answers "hello" after SPIN rounds of xorshift, on one thread.
import { createServer } from 'node:http';

const rounds = Number(process.env.SPIN ?? 0);
let state = 2463534242;

createServer((request, response) => {
  for (let i = 0; i < rounds; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
  }
  response.setHeader('X-State', (state >>> 0) % 10); // keeps the loop from being optimised away
  response.end('hello');
}).listen(Number(process.env.PORT), '127.0.0.1');

process.on('SIGTERM', () => process.exit(0));
