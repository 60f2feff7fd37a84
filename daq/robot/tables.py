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
Angle = Annotated[float, Meta(ge=-1e7, le=1e7)]
"""Of a joint or motor, in rad: a joint on the bench may turn for hours."""
Metres = Annotated[float, Meta(ge=-100, le=100)]
"""Where something is, seen from what carries it."""
Gravity = Annotated[float, Meta(ge=-1000, le=1000)]
Speed = Annotated[float, Meta(gt=0, le=1e4)]
Torque = Annotated[float, Meta(gt=0, le=1e6)]
Cycles = Annotated[int, Meta(ge=1, le=1000)]
Vector3 = tuple[float, float, float]
Place = tuple[Metres, Metres, Metres]
PositiveVector3 = tuple[Positive, Positive, Positive]


class Description(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every table of the robot file: immutable, keys by name, unknown keys refused."""
