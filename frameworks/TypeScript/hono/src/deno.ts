// The application on Deno. `deno serve --parallel` runs this module in one thread (a worker) per CPU in the affinity mask.
import { closeDatabase } from './database.ts';

export { app as default } from './app.ts';

// Open database connections would keep Deno running after SIGTERM.
Deno.addSignalListener('SIGTERM', async () => {
  await closeDatabase();
  Deno.exit(0);
});
