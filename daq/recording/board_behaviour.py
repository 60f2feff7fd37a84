"""The behaviour of each board as a recording states it: filters, references, limits of the wire.

Readers of a recording need no table of profiles, so that an unknown profile is not an obstacle.
Only recordings of format 1.0 (armature 0.1) do not state it: `_OF_FORMAT_1_0`. Those of 1.0 and 1.1
do not state when replies are made and commands obeyed, nor how values are cut.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from daq.recording.errors import RecordingFormatError
from daq.recording.layout import ATTRIBUTES, BEHAVIOUR_SINCE_MINOR


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
        reply_age_max_s: Values of a reply were latched before its exchange began, evenly up to this
            long. None where that is not stated: then they are taken to be from the end of the
            exchange before it, when the command of that one was obeyed.
        wire_s: From the beginning of an exchange until the board has the command.
        law_period_s: Time between two ticks of the control law; a command acts at the next one.
        is_truncated: Whether measured values were cut toward zero on the wire.
        current_lsb_a: What the wire resolves of currents; 0 where that is not stated.
        motor_velocity_lsb_rad_s: Of velocities, likewise.
        motor_position_lsb_rad: Of positions, likewise.
        torn_step_rad: What the upper word of a position counts, at the motor, where a reply may
            have it from the one before; 0 where it never has.
    """

    velocity_filter_hz: float
    current_filter_hz: float
    is_reference_advanced: bool
    kp_max_a_per_rad: float
    kd_max_a_s_per_rad: float
    ki_max_a_per_rad_s: float
    motor_velocity_max_rad_s: float
    reply_age_max_s: float | None = None
    wire_s: float = 0.0
    law_period_s: float = 0.0
    is_truncated: bool = False
    current_lsb_a: float = 0.0
    motor_velocity_lsb_rad_s: float = 0.0
    motor_position_lsb_rad: float = 0.0
    torn_step_rad: float = 0.0

    @property
    def velocity_lag_s(self) -> float:
        """Delay of measured velocities."""
        return 1.0 / (math.tau * self.velocity_filter_hz)

    @property
    def current_lag_s(self) -> float:
        """Delay of measured currents."""
        return 1.0 / (math.tau * self.current_filter_hz)

    @property
    def reply_age_s(self) -> float:
        """How old a reply's values are on average when its exchange begins, if that is stated."""
        return 0.5 * (self.reply_age_max_s or 0.0)

    @property
    def command_delay_s(self) -> float:
        """From the beginning of an exchange until its command acts, on average."""
        return self.wire_s + 0.5 * self.law_period_s


BEHAVIOUR_NAMES = tuple(field.name for field in fields(BoardBehaviour))
_MOMENT_MAX_S = 1e-3
"""No board takes longer than the period of a loop to answer or to obey."""
_HIGHEST = {
    **dict.fromkeys(("reply_age_max_s", "wire_s", "law_period_s"), _MOMENT_MAX_S),
    "current_lsb_a": 1.0,
    "motor_velocity_lsb_rad_s": 10.0,
    "motor_position_lsb_rad": 1.0,
    "torn_step_rad": math.tau,
}
"""Far more than any board has; what is not named here may be infinite."""
_FLAGS = ("is_reference_advanced", "is_truncated")
_FILTERS = ("velocity_filter_hz", "current_filter_hz")
_SINCE = {item.name.removeprefix("board_"): item.since_minor for item in ATTRIBUTES}


def read_behaviours(path: Path, attributes: Mapping[str, Any]) -> tuple[BoardBehaviour, ...]:
    """Return what the attributes of a file, checked against the layout, say of each board.

    Raises:
        RecordingFormatError: A value that no board has, or a file of format 1.0 with a profile that
            did not exist then.
    """
    if attributes["version_minor"] < BEHAVIOUR_SINCE_MINOR:
        return tuple(_of_format_1_0(path, profile) for profile in attributes["board_profiles"])
    # What an older minor version did not state keeps its default.
    names = [name for name in BEHAVIOUR_NAMES if _SINCE[name] <= attributes["version_minor"]]
    columns = [attributes[f"board_{name}"] for name in names]
    boards = []
    for row in zip(*columns, strict=True):
        stated = dict(zip(names, row, strict=True))
        wrong = [
            f"board_{name} = {value:g}" for name, value in stated.items() if _is_wrong(name, value)
        ]
        behaviour = BoardBehaviour(**stated)
        if not wrong and behaviour.command_delay_s > _MOMENT_MAX_S:
            wrong = [f"board_wire_s = {behaviour.wire_s:g}"]
        if wrong:
            raise RecordingFormatError(
                path,
                f"no board behaves like this: {', '.join(wrong)}; the file is damaged",
                code="impossible-behaviour",
            )
        flags = {name: bool(getattr(behaviour, name)) for name in _FLAGS}
        boards.append(replace(behaviour, **flags))
    return tuple(boards)


def _is_wrong(name: str, value: float) -> bool:
    """Whether no board has this value."""
    if name in _FLAGS:
        return value not in (0, 1)
    is_low = value <= 0.0 if name in _FILTERS else value < 0.0
    return is_low or not value <= _HIGHEST.get(name, math.inf)


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
