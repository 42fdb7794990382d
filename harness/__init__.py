"""tfb builds, verifies, measures and ranks implementations of web frameworks."""

import os

# Matrices have tens of rows, so a second thread of numpy's BLAS does not help. It spins between calls and uses up to
# sixty times the CPU time of the work, and its buffers may exceed a memory limit. BLAS reads the variable when loaded.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
