"""tfb builds, verifies, measures and ranks implementations of web frameworks."""

import os

# Matrices have tens of rows, so additional threads of numpy's BLAS are useless. They spin between calls, which takes up
# to sixty times the CPU time of the work, and their buffers may exceed a memory limit. BLAS reads the variable
# when it is loaded.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
