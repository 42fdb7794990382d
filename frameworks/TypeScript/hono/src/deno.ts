// The application on Deno. `deno serve --parallel` runs this module on a thread for each CPU of the affinity mask.
import { closeDatabase } from './database.ts';

export { app as default } from './app.ts';

// Deno itself would wait for the connections to the database.
Deno.addSignalListener('SIGTERM', async () => {
  await closeDatabase();
  Deno.exit(0);
});
