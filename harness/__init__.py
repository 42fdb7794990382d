"""tfb builds, verifies, measures and ranks implementations of web frameworks."""

import os

# Make numpy's BLAS use a single thread. tfb's matrices have only tens of rows, so more threads do not help. Idle
# threads spin and use up to sixty times the CPU time of the work. Their buffers may exceed a memory limit. BLAS reads
# the variable when it is loaded, so set it now.
os.environ.setdefault("TFB_CALLER_OPENBLAS_NUM_THREADS", os.environ.get("OPENBLAS_NUM_THREADS", ""))
os.environ["OPENBLAS_NUM_THREADS"] = "1"
