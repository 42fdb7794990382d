// The number of workers, and each worker's share of a connection limit.
import { availableParallelism } from 'node:os';

/** One worker per CPU. availableParallelism() counts the CPUs in the affinity mask, not all of the machine's CPUs. */
export const WORKERS = availableParallelism();

/** Returns each worker's equal share of `total`: total / workers, rounded down, but at least 1. */
export const perWorker = (total) => Math.max(1, Math.floor(total / WORKERS));
