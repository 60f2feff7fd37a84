"""Decodes many frames at once with NumPy: the vectorised half of `firmware_protocol.codec`.

Nothing is checked here: only frames that a `daq.boards.board` found sound have values.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from firmware_protocol.fields import Field, FrameLayout, Framing

Array = np.ndarray[Any, np.dtype[Any]]


class FrameArrays:
    """The frames of a board in one direction, which are in the field `part` of a sample.

    Attributes:
        fields: The table's lines by name.
        size: Bytes of a frame on its link.
    """

    def __init__(self, layout: FrameLayout, framing: Framing, part: str) -> None:
        start = len(layout.header(framing))
        self.fields = {field.name: field for field in layout.fields}
        self.size = start + layout.size
        self._part = part
        self._dtype = np.dtype(
            {
                "names": list(self.fields),
                "formats": [(f">{f.wire.struct_code}", (f.count,)) for f in layout.fields],
                "offsets": [start + offset for _, offset in layout.offsets()],
                "itemsize": self.size,
            }
        )

    def view(self, samples: Array) -> Array:
        """Return the frames of some samples: fields by name, each of shape (n, 1) or (n, 2)."""
        return np.ascontiguousarray(samples[self._part]).view(self._dtype).reshape(len(samples))


def si_values(raw: Array, field: Field) -> Array:
    """Return the values of a field's integers; NaN for those that mean "no sensor"."""
    values: Array = raw * field.lsb
    if field.is_shifted:
        values = values + field.offset
        if field.absent_raw is not None:
            values[raw == field.absent_raw] = math.nan
    return values
