"""The behaviour of each board as a recording states it: filters, references, limits of the wire.

Readers of a recording need no table of profiles, so that an unknown profile is not an obstacle.
Only recordings of format 1.0 (armature 0.1) do not state it: `_OF_FORMAT_1_0`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from daq.recording.errors import RecordingFormatError
from daq.recording.layout import BEHAVIOUR_SINCE_MINOR


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardBehaviour:
    """Behaviour of one board; in the file, each field is an attribute `board_…`, a value per board.

    Attributes:
        velocity_filter_hz: Corner of the first-order low-pass on measured velocities.
        current_filter_hz: Of the one on measured currents.
        is_reference_advanced: Whether the position reference moves on at the reference velocity
            between frames; else it is held.
        kp_max_a_per_rad: The highest gain that the wire carries.
        kd_max_a_s_per_rad: Likewise.
        ki_max_a_per_rad_s: Likewise; 0 where the board has no such gain.
        motor_velocity_max_rad_s: The highest reference velocity that the wire carries.
    """

    velocity_filter_hz: float
    current_filter_hz: float
    is_reference_advanced: bool
    kp_max_a_per_rad: float
    kd_max_a_s_per_rad: float
    ki_max_a_per_rad_s: float
    motor_velocity_max_rad_s: float

    @property
    def velocity_lag_s(self) -> float:
        """Delay of measured velocities."""
        return 1.0 / (math.tau * self.velocity_filter_hz)

    @property
    def current_lag_s(self) -> float:
        """Delay of measured currents."""
        return 1.0 / (math.tau * self.current_filter_hz)


BEHAVIOUR_NAMES = tuple(field.name for field in fields(BoardBehaviour))


def read_behaviours(path: Path, attributes: Mapping[str, Any]) -> tuple[BoardBehaviour, ...]:
    """Return what the attributes of a file, checked against the layout, say of each board.

    Raises:
        RecordingFormatError: A value that no board has, or a file of format 1.0 with a profile that
            did not exist then.
    """
    if attributes["version_minor"] < BEHAVIOUR_SINCE_MINOR:
        return tuple(_of_format_1_0(path, profile) for profile in attributes["board_profiles"])
    columns = [attributes[f"board_{name}"] for name in BEHAVIOUR_NAMES]
    boards = []
    for row in zip(*columns, strict=True):
        behaviour = BoardBehaviour(**dict(zip(BEHAVIOUR_NAMES, row, strict=True)))
        filters_hz = (behaviour.velocity_filter_hz, behaviour.current_filter_hz)
        if not (all(value >= 0 for value in row) and all(hz > 0 for hz in filters_hz)):
            raise RecordingFormatError(
                path,
                f"no board behaves like {behaviour}: the file is damaged",
                code="impossible-behaviour",
            )
        boards.append(replace(behaviour, is_reference_advanced=bool(row[2])))
    return tuple(boards)


def _of_format_1_0(path: Path, profile: str) -> BoardBehaviour:
    if profile not in _OF_FORMAT_1_0:
        raise RecordingFormatError(
            path,
            "format version 1.0 does not state how boards filter values and hold references, and "
            f"for the profile {profile!a} it is not known (known: "
            f"{', '.join(_OF_FORMAT_1_0)}): record again with this version of armature",
            code="unknown-profile",
        )
    return _OF_FORMAT_1_0[profile]


_KRPM = 1000.0 * math.tau / 60.0
_ARM = BoardBehaviour(
    velocity_filter_hz=100.0,
    current_filter_hz=1000.0,
    is_reference_advanced=True,
    kp_max_a_per_rad=65535 / 2**11 / math.tau,
    kd_max_a_s_per_rad=65535 / 2**10 / _KRPM,
    ki_max_a_per_rad_s=65535 / 2**11 / math.tau,
    motor_velocity_max_rad_s=32767 / 2**11 * _KRPM,
)
_WITHOUT_INTEGRATOR = replace(_ARM, is_reference_advanced=False, ki_max_a_per_rad_s=0.0)
_OF_FORMAT_1_0 = {"arm": _ARM, "uomodri": _WITHOUT_INTEGRATOR, "udriver2": _WITHOUT_INTEGRATOR}
"""History, only to read the recordings of armature 0.1: those were the profiles then. Boards of
today are described in `firmware_protocol.profiles`; nothing is ever added here."""
