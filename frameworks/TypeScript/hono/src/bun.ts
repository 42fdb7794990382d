// A cluster on Bun: the primary starts a process per usable CPU. All listen on the same port (SO_REUSEPORT).
import { availableParallelism } from 'node:os';

const GRACE_MS = 3000;

if (process.env.TFB_WORKER) {
  const { serve } = await import('./bun-worker.ts');
  serve(GRACE_MS);
} else {
  // availableParallelism() counts the CPUs of the affinity mask.
  const workers = Array.from({ length: availableParallelism() }, () =>
    Bun.spawn([process.execPath, import.meta.path], {
      env: { ...process.env, TFB_WORKER: '1' },
      stdout: 'inherit',
      stderr: 'inherit',
      onExit: () => stop(1),
    }),
  );
  let stopping = false;

  // With one worker fewer, the benchmark would report wrong results, so stop instead.
  function stop(exitCode: number): void {
    if (stopping) return;
    stopping = true;
    for (const worker of workers) worker.kill('SIGTERM');
    Promise.all(workers.map((worker) => worker.exited)).then(() => process.exit(exitCode));
  }
  for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => stop(0));
}
