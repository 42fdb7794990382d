// A worker on Bun.
import { app } from './app.ts';
import { closeDatabase } from './database.ts';

/** Serves until SIGTERM, then exits within `graceMs`. */
export function serve(graceMs: number): void {
  const server = Bun.serve({
    hostname: process.env.HOST || '0.0.0.0',
    port: Number(process.env.PORT || 8080),
    reusePort: true,
    idleTimeout: 0, // keep idle connections
    fetch: app.fetch,
  });
  console.log(`worker ${process.pid} listens on ${server.hostname}:${server.port}, Bun ${Bun.version}`);
  process.once('SIGTERM', async () => {
    setTimeout(() => process.exit(0), graceMs).unref();
    await server.stop();
    await closeDatabase();
    process.exit(0);
  });
  process.on('SIGINT', () => {}); // the primary handles Ctrl-C
}
