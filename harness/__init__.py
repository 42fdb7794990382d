"""tfb: builds, verifies, measures and ranks web-framework implementations."""

import os

# The matrices here have tens of rows: a second thread of numpy's BLAS makes nothing quicker, and spins on a CPU between
# calls, up to sixty times the work. Its buffers also take address space that a limit may not leave. Read when loaded.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
