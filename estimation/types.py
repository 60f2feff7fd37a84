"""Types of arrays that all of estimation uses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Flags = NDArray[np.bool_]
Rows = NDArray[np.intp]
"""Numbers of rows, columns or blocks."""
