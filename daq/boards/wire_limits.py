"""Checks of a robot's limits against what its boards' wire formats carry.

They live here and not in `daq.robot`, because the description must not know the wire.
"""

from __future__ import annotations

from collections.abc import Iterator

from daq.errors import ConfigError
from daq.robot import BoardPort, DrivenJoint, DrivenRobot, Gains
from firmware_protocol.errors import UnknownNameError
from firmware_protocol.fields import Field
from firmware_protocol.profile import Profile
from firmware_protocol.profiles import profile_named


def board_profile(port: BoardPort, override: str | None = None) -> Profile:
    """Return the profile of a board, or the one given in its place.

    Raises:
        ConfigError: There is no profile of that name.
    """
    try:
        return profile_named(override or port.profile)
    except UnknownNameError as error:
        raise ConfigError(f"board {port.name}", [str(error)]) from error


def wire_problems(
    robot: DrivenRobot, *, profile: str | None = None, rate_hz: float = 1000.0
) -> list[str]:
    """Return what the wire could not carry, one line each with its place in the robot file.

    A profile is checked against in place of each board's own.
    """
    problems: list[str] = []
    for number, port in enumerate(robot.boards):
        try:
            chosen = board_profile(port, profile)
        except ConfigError as error:
            problems += [f"boards[{number}].profile: {text}" for text in error.problems]
            continue
        gap_s = chosen.behaviour.frame_gap_min_s
        if rate_hz * gap_s > 1.0:
            problems.append(
                f"boards[{number}].profile: {chosen.name} needs {gap_s * 1e3:g} ms between frames, "
                f"{rate_hz:g} Hz leaves {1e3 / rate_hz:g} ms"
            )
        for joint in filter(None, robot.joints_on(port)):
            path = f"joints[{robot.joints.index(joint)}]"
            problems += [f"{path}.{text}" for text in _joint_problems(joint, chosen)]
    return problems


def board_remarks(robot: DrivenRobot, *, profile: str | None = None) -> list[str]:
    """Return what a board clamps although the wire carries it, one line each; the robot runs on."""
    remarks = []
    for port in robot.boards:
        chosen = board_profile(port, profile)
        highest_a = chosen.behaviour.current_max_a
        for joint in filter(None, robot.joints_on(port)):
            if highest_a is not None and joint.limits.current_max_a > highest_a:
                remarks.append(
                    f"joints[{robot.joints.index(joint)}].limits.current_max_a: "
                    f"{joint.limits.current_max_a:g} A, a board of profile {chosen.name} "
                    f"drives at most {highest_a:g} A"
                )
    return remarks


def gain_problems(gains: Gains, profile: Profile) -> Iterator[str]:
    """Yield what the wire could not carry of a law's gains, one line each with the gain's name."""
    for name in gains.__struct_fields__:
        field = next((f for f in profile.command.fields if f.name == name), None)
        # A gain that the board does not have is not sent.
        if field is not None and getattr(gains, name) > _highest(field):
            yield (
                f"{name}: {getattr(gains, name):g}, the wire carries at most {_highest(field):g}"
            )


def _joint_problems(joint: DrivenJoint, profile: Profile) -> Iterator[str]:
    highest_a = _highest(_field(profile, "isat_a"))
    if joint.limits.current_max_a > highest_a:
        yield (
            f"limits.current_max_a: {joint.limits.current_max_a:g} A, "
            f"the wire carries at most {highest_a:g} A"
        )
    step_a = _field(profile, "isat_a").lsb
    if joint.limits.current_max_a < step_a:
        yield (
            f"limits.current_max_a: {joint.limits.current_max_a:g} A, the wire carries limits in "
            f"steps of {step_a:g} A, and 0 would mean the board's own"
        )
    for law, gains in (("position", joint.control.position), ("velocity", joint.control.velocity)):
        yield from (f"control.{law}.{problem}" for problem in gain_problems(gains, profile))
    motor_rad_s = joint.limits.velocity_max_rad_s * joint.drive.gear_reduction
    highest_rad_s = _highest(_field(profile, "motor_velocity_rad_s"))
    if motor_rad_s > highest_rad_s:
        yield (
            f"limits.velocity_max_rad_s: {motor_rad_s:g} rad/s at the motor, "
            f"the wire carries at most {highest_rad_s:g} rad/s"
        )


def _field(profile: Profile, name: str) -> Field:
    return next(field for field in profile.command.fields if field.name == name)


def _highest(field: Field) -> float:
    return field.raw_maximum * field.lsb
