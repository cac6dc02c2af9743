"""Type aliases shared by all packages."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

Progress: TypeAlias = Callable[[float], None]
"""Called during long work with the fraction done so far, from 0 to 1."""
