// A cluster on Bun: the primary starts the workers. All workers listen on the same port (SO_REUSEPORT).
import { WORKERS } from './workers.ts';

const GRACE_MS = 3000;

if (process.env.TFB_WORKER) {
  const { serve } = await import('./bun-worker.ts');
  serve(GRACE_MS);
} else {
  const workers = Array.from({ length: WORKERS }, () =>
    Bun.spawn([process.execPath, import.meta.path], {
      env: { ...process.env, TFB_WORKER: '1' },
      stdout: 'inherit',
      stderr: 'inherit',
      onExit: () => stop(1),
    }),
  );
  let stopping = false;

  // Also called when a worker dies: results measured with fewer workers would be wrong.
  function stop(exitCode: number): void {
    if (stopping) return;
    stopping = true;
    for (const worker of workers) worker.kill('SIGTERM');
    Promise.all(workers.map((worker) => worker.exited)).then(() => process.exit(exitCode));
  }
  for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => stop(0));
}
