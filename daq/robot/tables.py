"""What every table of the robot file is made of: its base class and kinds of numbers and names."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
Name = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z][A-Za-z0-9_]{0,39}\Z",
        description="a name: a letter, then letters, digits or _, at most 40 in all",
    ),
]
Cycles = Annotated[int, Meta(ge=1, le=1000)]
Vector3 = tuple[float, float, float]
PositiveVector3 = tuple[Positive, Positive, Positive]


class Description(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every table of the robot file: immutable, keys by name, unknown keys refused."""
