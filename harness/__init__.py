"""tfb: builds, verifies, measures and ranks web-framework implementations."""

import os

# The matrices here have tens of rows: a second thread of numpy's BLAS makes nothing quicker, and spins on a CPU between
# calls, up to sixty times the work. Read once, when numpy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
