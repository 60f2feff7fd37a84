"""Checks of a robot's limits against what its boards' wire formats carry.

They live here and not in `daq.robot`, because the description must not know the wire.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from daq.boards.wire_range import wire_range
from daq.errors import ConfigError
from daq.robot import BoardPort, DrivenJoint, DrivenRobot, Gains, Safety
from firmware_protocol.behaviour import Behaviour
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
            problems += [f"{path}.{text}" for text in _joint_problems(robot, joint, chosen)]
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


def within_boards(robot: DrivenRobot, *, profile: str | None = None) -> DrivenRobot:
    """Return the robot with the currents that its boards drive, where they are less than stated.

    For those who plan motions and must not know the wire.

    Raises:
        ConfigError: There is no profile of that name.
    """
    highest_a = {
        port.name: board_profile(port, profile).behaviour.current_max_a or math.inf
        for port in robot.boards
    }
    joints = []
    for joint in robot.joints:
        current_a = min(joint.limits.current_max_a, highest_a[joint.drive.board])
        limits = msgspec.structs.replace(joint.limits, current_max_a=current_a)
        joints.append(msgspec.structs.replace(joint, limits=limits))
    return msgspec.structs.replace(robot, joints=tuple(joints))


def gain_problems(
    gains: Gains, robot: DrivenRobot, joint: DrivenJoint, profile: Profile
) -> Iterator[str]:
    """Yield what is wrong with a law's gains, one line each with the gain's name.

    The wire does not carry them, or with them the board's law could overflow.
    """
    for name in gains.__struct_fields__:
        field = next((f for f in profile.command.fields if f.name == name), None)
        # A gain that the board does not have is not sent.
        if field is not None and getattr(gains, name) > _highest(field):
            yield (
                f"{name}: {getattr(gains, name):g}, the wire carries at most {_highest(field):g}"
            )
    yield from sum_problems(gains, robot.safety, joint, profile.behaviour)


def sum_problems(
    gains: Gains, safety: Safety, joint: DrivenJoint, behaviour: Behaviour
) -> Iterator[str]:
    """Yield how far gains are too high for a board whose law overflows and so changes its sign.

    Counted are the largest position error, the joint's highest speed as the error of the velocity,
    and the largest feed-forward, all at once.
    """
    highest_a = behaviour.current_sum_max_a
    if highest_a is None:
        return
    error_rad = safety.following_error_max_rad * joint.drive.gear_reduction
    error_rad_s = joint.limits.velocity_max_rad_s * joint.drive.gear_reduction
    kp_a = gains.kp_a_per_rad * error_rad
    kd_a = gains.kd_a_s_per_rad * error_rad_s
    ff_a = joint.limits.current_max_a
    if kp_a + kd_a + ff_a < highest_a:
        return
    text = (
        f"with following_error_max_rad = {safety.following_error_max_rad:g} it adds up to "
        f"{kp_a:.4g} A of position, {kd_a:.4g} A of velocity error and {ff_a:g} A of feed-forward, "
        f"and at {highest_a:g} A the board's law overflows and drives the other way"
    )
    kp_most = (highest_a - ff_a - kd_a) / error_rad
    if kp_most > 0.0:
        yield f"kp_a_per_rad: {gains.kp_a_per_rad:g}, less than {kp_most:.3g} is safe: {text}"
    else:
        kd_most = (highest_a - ff_a) / error_rad_s
        yield f"kd_a_s_per_rad: {gains.kd_a_s_per_rad:g}, less than {kd_most:.3g} is safe: {text}"


def _joint_problems(robot: DrivenRobot, joint: DrivenJoint, profile: Profile) -> Iterator[str]:
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
        problems = gain_problems(gains, robot, joint, profile)
        yield from (f"control.{law}.{problem}" for problem in problems)
    motor_rad_s = joint.limits.velocity_max_rad_s * joint.drive.gear_reduction
    highest_rad_s = _highest(_field(profile, "motor_velocity_rad_s"))
    if motor_rad_s > highest_rad_s:
        yield (
            f"limits.velocity_max_rad_s: {motor_rad_s:g} rad/s at the motor, "
            f"the wire carries at most {highest_rad_s:g} rad/s"
        )
    wire = wire_range(robot, joint, profile.behaviour)
    if wire.reach_rad <= 0.0:
        turns = (wire.wrap_rad - wire.reach_rad) / math.tau
        yield (
            f"limits.velocity_max_rad_s: {motor_rad_s:g} rad/s at the motor and "
            f"following_error_max_rad = {robot.safety.following_error_max_rad:g} need a margin of "
            f"{turns:.3g} motor turns before positions wrap on the wire, which is at "
            f"{profile.behaviour.position_wrap_turns:g} turns"
        )


def _field(profile: Profile, name: str) -> Field:
    return next(field for field in profile.command.fields if field.name == name)


def _highest(field: Field) -> float:
    return field.raw_maximum * field.lsb
