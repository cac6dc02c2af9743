"""Ratios of running times against peers and references, each measured in one run on one core.

Import this package before numpy: it limits numerical libraries, here and in child processes, to one thread.
"""

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_variable] = "1"
