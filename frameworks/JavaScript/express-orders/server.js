// The cluster: the primary forks the workers, and exits when a worker exits.
import cluster from 'node:cluster';
import process from 'node:process';

import { WORKERS } from './workers.js';

const GRACE_MS = 3000;

if (cluster.isPrimary) {
  startPrimary();
} else {
  const { serve } = await import('./worker.js');
  serve(GRACE_MS);
}

function startPrimary() {
  const workers = Array.from({ length: WORKERS }, () => cluster.fork());
  let stopping = false;

  const stop = (exitCode) => {
    stopping = true;
    process.exitCode = exitCode;
    for (const worker of workers) worker.process.kill('SIGTERM');
    // A hanging worker must not outlive the primary. The timer is unref'd, so it never delays a clean exit.
    setTimeout(() => workers.forEach((worker) => worker.process.kill('SIGKILL')), GRACE_MS + 1000).unref();
  };

  // Exit when a worker dies: results measured with fewer workers would be wrong.
  cluster.on('exit', (worker, code, signal) => {
    if (stopping) return;
    console.error(`worker ${worker.process.pid} died (${signal ?? `exit code ${code}`}); stopping the server`);
    stop(1);
  });
  process.once('SIGTERM', () => stop(0));
  process.once('SIGINT', () => stop(0));
}
