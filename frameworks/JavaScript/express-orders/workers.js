// The number of workers, and a worker's part of a total.
import { availableParallelism } from 'node:os';

/** One worker per CPU. availableParallelism() counts the CPUs in the affinity mask, not all of the machine's CPUs. */
export const WORKERS = availableParallelism();

/** Returns a worker's part of a total that all workers share equally: total / workers, but at least 1. */
export const perWorker = (total) => Math.max(1, Math.floor(total / WORKERS));
