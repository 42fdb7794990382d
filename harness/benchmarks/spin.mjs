// A server whose cost per request is known: the json test after SPIN rounds of xorshift, on one thread.
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
  response.setHeader('Server', 'spin');
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.writeHead(405, { Allow: 'GET, HEAD' }).end();
    return;
  }
  if (new URL(request.url, 'http://spin').pathname !== '/json') {
    response.writeHead(404).end();
    return;
  }
  response.setHeader('Content-Type', 'application/json');
  const body = JSON.stringify({ message: 'Hello, World!' });
  response.setHeader('Content-Length', Buffer.byteLength(body));
  response.end(body);
}).listen(Number(process.env.PORT), process.env.HOST ?? '127.0.0.1');

process.on('SIGTERM', () => process.exit(0));
