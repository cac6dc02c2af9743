"""Ratios against peers and references, each taken in one run on one core.

Importing this package, before anything imports numpy, limits numerical libraries to one thread each; processes started
later inherit that.
"""

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_variable] = "1"
