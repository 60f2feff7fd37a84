"""What every profile's frames have in common, for code that works with any of them.

The value types themselves are made from the tables (`FrameCodec.values_type`); these protocols name
the fields that no profile may lack, so that the host's code is type-checked.
"""

# ruff: noqa: D102 (the tables document every field)

from __future__ import annotations

from typing import Any, Protocol, Self

Pair = tuple[float, float]
"""Motor 1, motor 2."""


class FrameValues(Protocol):
    """A decoded frame: a named tuple, one entry per field, pairs for fields of both motors."""

    @property
    def _fields(self) -> tuple[str, ...]: ...

    @property
    def index(self) -> int: ...

    def _asdict(self) -> dict[str, Any]: ...

    def _replace(self, **changes: object) -> Self: ...


class CommandValues(FrameValues, Protocol):
    """A command of any profile."""

    @property
    def mode(self) -> int: ...
    @property
    def timeout_ms(self) -> int: ...
    @property
    def motor_position_rad(self) -> Pair: ...
    @property
    def motor_velocity_rad_s(self) -> Pair: ...
    @property
    def iq_ff_a(self) -> Pair: ...
    @property
    def kp_a_per_rad(self) -> Pair: ...
    @property
    def kd_a_s_per_rad(self) -> Pair: ...
    @property
    def isat_a(self) -> Pair: ...


class ReplyValues(FrameValues, Protocol):
    """A reply of any profile."""

    @property
    def status(self) -> int: ...
    @property
    def timestamp_ms(self) -> int: ...
    @property
    def motor_position_rad(self) -> Pair: ...
    @property
    def motor_velocity_rad_s(self) -> Pair: ...
    @property
    def iq_a(self) -> Pair: ...
