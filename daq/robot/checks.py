"""Checks of a robot's values against each other; ranges of single values stand in the description.

A robot that was read only in part is checked as far as it goes. Limits are not compared with
what the boards' wire can carry: that is done beside the boards.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from typing import TypeVar

from daq.robot.arm_checks import (
    check_bounds,
    check_coupling,
    check_inertia,
    check_kinematics,
    check_parts,
    check_total_mass,
)
from daq.robot.description import NOT_DRIVEN, Joint, PublishedParameters, Robot
from daq.robot.driving import BoardPort, Bus, Drive
from daq.robot.reading import Mistake, Unreadable, UnreadableError, describe, show

Table = TypeVar("Table")
JOINTS_MAX = 32
NUMBERS_PER_JOINT = 12
"""Ten rigid-body parameters and two of friction, in a published parameter vector."""


def check_profiles(robot: Robot, profiles: Collection[str]) -> list[Mistake]:
    """Find what keeps a robot from being driven: no boards, or of none of these wire formats."""
    if isinstance(robot.boards, Unreadable):
        return []
    if not robot.boards and not _is_meant_to_be_driven(robot):
        return [Mistake("boards", "missing", f"at least one to drive {robot.name}: {NOT_DRIVEN}")]
    return [
        Mistake(f"boards[{index}].profile", show(board.profile), f"one of {', '.join(profiles)}")
        for index, board in enumerate(robot.boards)
        if not isinstance(board, Unreadable)
        and isinstance(board.profile, str)
        and board.profile not in profiles
    ]


def check_robot(robot: Robot) -> list[Mistake]:
    """Find every contradiction in a robot; checks that need an `Unreadable` value are left out."""
    joints = () if isinstance(robot.joints, Unreadable) else robot.joints
    published = robot.published_parameters
    is_driven = _is_meant_to_be_driven(robot)
    checks = [
        _check_driven(robot) if is_driven else iter(()),
        _check_bus(robot),
        _check_count(robot.joints),
        _check_unique(robot.boards, "boards", "name", lambda board: (board.name,)),
        _check_unique(robot.boards, "boards", "spi.device", lambda board: (board.spi.device,)),
        _check_unique(robot.joints, "joints", "name", lambda joint: (joint.name,)),
        _check_unique(robot.joints, "joints", "drive.output", _output),
        _check_unique(published, "published_parameters", "name", lambda vector: (vector.name,)),
        _check_published(published, robot.joints),
        check_kinematics(robot),
        check_coupling(robot),
        check_total_mass(robot),
        _check_terms(robot),
    ]
    for index, joint in enumerate(joints):
        path = f"joints[{index}]"
        checks += [
            _check_joint_driven(joint, path) if is_driven else iter(()),
            _check_known(joint, path, "board", lambda: [board.name for board in robot.boards]),
            _check_known(joint, path, "motor", lambda: list(robot.motors)),
            _check_current(joint, path, robot),
            _check_direction(joint, path),
            _check_positions(joint, path),
            _check_bench(joint, path),
            check_parts(joint, path, robot, is_driven=is_driven),
            check_inertia(joint, path),
            check_bounds(joint, path),
        ]
    problems: list[Mistake] = []
    for check in checks:
        with contextlib.suppress(UnreadableError):
            problems.extend(check)
    return problems


def _is_meant_to_be_driven(robot: Robot) -> bool:
    """Whether anything in it is there to drive it: then all of it must be."""
    joints = () if isinstance(robot.joints, Unreadable) else robot.joints
    return (
        any(isinstance(tables, Unreadable) or tables for tables in (robot.boards, robot.motors))
        or robot.bus is not None
        or any(not isinstance(joint, Unreadable) and joint.drive is not None for joint in joints)
    )


def _check_driven(robot: Robot) -> Iterator[Mistake]:
    missing = {
        "bus": (robot.bus is None, describe(Bus)),
        "boards": (robot.boards == (), f"at least one, {describe(BoardPort)}"),
        "motors": (robot.motors == {}, "the motor types that the drives name"),
    }
    for path, (is_missing, expected) in missing.items():
        if is_missing:
            yield Mistake(path, "missing", f"{expected} (only a robot without drives has none)")


def _check_joint_driven(joint: Joint, path: str) -> Iterator[Mistake]:
    if joint.kind is None:
        yield Mistake(f"{path}.kind", "missing", '"axial" or "radial"')
    if joint.drive is None:
        expected = f"{describe(Drive)} (only a robot without boards has none)"
        yield Mistake(f"{path}.drive", "missing", expected)
    elif joint.transmission is not None:
        found = show({})
        yield Mistake(f"{path}.transmission", found, "this table only for a joint without drive")
    if not isinstance(joint.limits, Unreadable) and joint.limits.current_max_a == math.inf:
        yield Mistake(f"{path}.limits.current_max_a", "missing", "a number > 0")


def _check_bus(robot: Robot) -> Iterator[Mistake]:
    bus = robot.bus
    if bus is None:
        return
    if not bus.min_v < bus.nominal_v:
        yield Mistake("bus.min_v", show(bus.min_v), f"less than nominal_v = {bus.nominal_v}")
    if not bus.nominal_v < bus.max_v:
        yield Mistake("bus.max_v", show(bus.max_v), f"more than nominal_v = {bus.nominal_v}")


def _check_terms(robot: Robot) -> Iterator[Mistake]:
    terms = robot.estimation.terms
    for index, term in enumerate(terms):
        if term in terms[:index]:
            yield Mistake(f"estimation.terms[{index}]", show(term), "each term once")


def _check_count(joints: Sequence[Joint]) -> Iterator[Mistake]:
    if not joints:
        yield Mistake("joints", show(joints), "at least one")
    elif len(joints) > JOINTS_MAX:
        yield Mistake("joints", show(joints), f"at most {JOINTS_MAX} joints")


def _check_unique(
    tables: Sequence[Table], path: str, key: str, values_of: Callable[[Table], tuple[Hashable, ...]]
) -> Iterator[Mistake]:
    seen: dict[Hashable, str] = {}
    for index, table in enumerate(tables):
        with contextlib.suppress(UnreadableError):
            values = values_of(table)
            here = f"{path}[{index}]"
            if values in seen:
                found = " of ".join(show(value) for value in values)
                yield Mistake(f"{here}.{key}", found, f"another than that of {seen[values]}")
            if values:
                seen.setdefault(values, here)


def _output(joint: Joint) -> tuple[Hashable, ...]:
    """Return where a joint is connected; empty without a drive."""
    return () if joint.drive is None else (joint.drive.output, joint.drive.board)


def _check_known(
    joint: Joint, path: str, key: str, names: Callable[[], list[str]]
) -> Iterator[Mistake]:
    if joint.drive is not None and (known := names()):
        name = getattr(joint.drive, key)
        if name not in known:
            yield Mistake(f"{path}.drive.{key}", show(name), f"one of {', '.join(known)}")


def _check_current(joint: Joint, path: str, robot: Robot) -> Iterator[Mistake]:
    if joint.drive is None:
        return
    motor = robot.motors.get(joint.drive.motor)
    limit = joint.limits.current_max_a
    if motor is not None and math.inf > limit > motor.current_max_a:
        expected = f"at most {motor.current_max_a}, the {joint.drive.motor}'s current_max_a"
        yield Mistake(f"{path}.limits.current_max_a", show(limit), expected)


def _check_direction(joint: Joint, path: str) -> Iterator[Mistake]:
    if joint.drive is not None and joint.drive.direction not in (1, -1):
        yield Mistake(f"{path}.drive.direction", show(joint.drive.direction), "1 or -1")


def _check_positions(joint: Joint, path: str) -> Iterator[Mistake]:
    low, high = joint.limits.position_min_rad, joint.limits.position_max_rad
    if not low < high:
        yield Mistake(
            f"{path}.limits.position_min_rad", show(low), f"less than position_max_rad = {high}"
        )


def _check_bench(joint: Joint, path: str) -> Iterator[Mistake]:
    low, high = joint.bench.speed_min_rad_s, joint.bench.speed_max_rad_s
    limit = joint.limits.velocity_max_rad_s
    if high is not None and high > limit:
        expected = f"at most velocity_max_rad_s = {limit}"
        yield Mistake(f"{path}.bench.speed_max_rad_s", show(high), expected)
    highest = limit if high is None else high
    if low is not None and not low < highest:
        expected = f"less than the highest speed, {highest}"
        yield Mistake(f"{path}.bench.speed_min_rad_s", show(low), expected)


def _check_published(
    published: Sequence[PublishedParameters], joints: Sequence[object]
) -> Iterator[Mistake]:
    length = NUMBERS_PER_JOINT * len(joints)
    for index, parameters in enumerate(published):
        with contextlib.suppress(UnreadableError):
            if len(parameters.values) != length:
                yield Mistake(
                    f"published_parameters[{index}].values",
                    f"{len(parameters.values)} numbers",
                    f"{length}: {NUMBERS_PER_JOINT} for each of {len(joints)} joints",
                )
