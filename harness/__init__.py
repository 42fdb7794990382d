"""tfb builds, verifies, measures and ranks implementations of web frameworks."""

import os

# Limit numpy's BLAS to a single thread. tfb's matrices have only tens of rows, so extra threads would not help. Idle
# BLAS threads spin, which can cost sixty times the CPU time of the computation, and their buffers can exceed a memory
# limit. BLAS reads the variable while numpy is imported, so set the variable before that.
os.environ.setdefault("TFB_CALLER_OPENBLAS_NUM_THREADS", os.environ.get("OPENBLAS_NUM_THREADS", ""))
os.environ["OPENBLAS_NUM_THREADS"] = "1"
