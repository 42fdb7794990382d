"""tfb builds, verifies, measures and ranks implementations of web frameworks."""

import os

# Limit numpy's BLAS library to a single thread, which is enough for tfb's matrices of tens of rows. Idle BLAS threads
# spin, which can cost sixty times the CPU time of the computation, and their buffers can exceed a memory limit. Set the
# variable before any numpy import, because BLAS reads it only then. TFB_CALLER_OPENBLAS_NUM_THREADS keeps the value
# that the caller of tfb had set.
os.environ.setdefault("TFB_CALLER_OPENBLAS_NUM_THREADS", os.environ.get("OPENBLAS_NUM_THREADS", ""))
os.environ["OPENBLAS_NUM_THREADS"] = "1"
