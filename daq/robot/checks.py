"""Checks of a robot's values against each other; ranges of single values stand in the description.

A robot that was read only in part is checked as far as it goes. Limits are not compared with
what the boards' wire can carry: that is done beside the boards.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Collection, Hashable, Iterator, Sequence
from operator import attrgetter

from daq.robot.description import Bus, Joint, Link, PublishedParameters, Robot
from daq.robot.geometry import (
    axes_by_dh,
    axes_by_placement,
    is_positive_definite,
    pseudo_inertia,
)
from daq.robot.reading import Problem, Unreadable, UnreadableError, show

KINEMATIC_TOLERANCE = 1e-6
"""How far placements and DH rows may disagree: metres, and radians times a metre."""
NUMBERS_PER_JOINT = 12
"""Ten rigid-body parameters and two of friction, in a published parameter vector."""


def check_profiles(robot: Robot, profiles: Collection[str]) -> list[Problem]:
    """Finds boards of a wire format that nobody knows.

    Args:
        robot: The robot.
        profiles: The wire formats there are; this package does not know them by itself.

    Returns:
        The problems.
    """
    boards = () if isinstance(robot.boards, Unreadable) else robot.boards
    return [
        Problem(f"boards[{index}].profile", show(board.profile), f"one of {', '.join(profiles)}")
        for index, board in enumerate(boards)
        if not isinstance(board, Unreadable)
        and isinstance(board.profile, str)
        and board.profile not in profiles
    ]


def check_robot(robot: Robot) -> list[Problem]:
    """Finds every contradiction in a robot.

    Args:
        robot: The robot; where `Unreadable` stands for a value, checks that need it are left out.

    Returns:
        The problems, none for a robot that can be used.
    """
    joints = () if isinstance(robot.joints, Unreadable) else robot.joints
    published = robot.published_parameters
    checks = [
        _check_bus(robot.bus),
        _check_some(robot.boards, "boards"),
        _check_some(robot.joints, "joints"),
        _check_unique(robot.boards, "boards", "name"),
        _check_unique(robot.boards, "boards", "spi.device"),
        _check_unique(robot.joints, "joints", "name"),
        _check_unique(robot.joints, "joints", "drive.output", together_with="drive.board"),
        _check_unique(published, "published_parameters", "name"),
        _check_published(published, robot.joints),
        _check_kinematics(robot.joints),
    ]
    for index, joint in enumerate(joints):
        path = f"joints[{index}]"
        checks += [
            _check_board(joint, path, robot),
            _check_motor(joint, path, robot),
            _check_current(joint, path, robot),
            _check_direction(joint, path),
            _check_positions(joint, path),
            _check_bench(joint, path),
            _check_parts(joint, path, len(joints)),
            _check_inertia(joint, path),
        ]
    problems: list[Problem] = []
    for check in checks:
        with contextlib.suppress(UnreadableError):
            problems.extend(check)
    return problems


def _check_bus(bus: Bus) -> Iterator[Problem]:
    if not bus.min_v < bus.nominal_v:
        yield Problem("bus.min_v", show(bus.min_v), f"less than nominal_v = {bus.nominal_v}")
    if not bus.nominal_v < bus.max_v:
        yield Problem("bus.max_v", show(bus.max_v), f"more than nominal_v = {bus.nominal_v}")


def _check_some(tables: Sequence[object], path: str) -> Iterator[Problem]:
    if not tables:
        yield Problem(path, show(tables), "at least one")


def _check_unique(
    tables: Sequence[object], path: str, key: str, together_with: str | None = None
) -> Iterator[Problem]:
    keys = (key,) if together_with is None else (key, together_with)
    seen: dict[Hashable, str] = {}
    for index, table in enumerate(tables):
        with contextlib.suppress(UnreadableError):
            values = tuple(attrgetter(name)(table) for name in keys)
            here = f"{path}[{index}]"
            if values in seen:
                found = " of ".join(show(value) for value in values)
                yield Problem(f"{here}.{key}", found, f"another than that of {seen[values]}")
            seen.setdefault(values, here)


def _check_board(joint: Joint, path: str, robot: Robot) -> Iterator[Problem]:
    yield from _check_known(
        joint.drive.board, [board.name for board in robot.boards], f"{path}.drive.board"
    )


def _check_motor(joint: Joint, path: str, robot: Robot) -> Iterator[Problem]:
    yield from _check_known(joint.drive.motor, list(robot.motors), f"{path}.drive.motor")


def _check_known(name: str, known: list[str], path: str) -> Iterator[Problem]:
    if name not in known:
        yield Problem(path, show(name), f"one of {', '.join(known) or '(none is described)'}")


def _check_current(joint: Joint, path: str, robot: Robot) -> Iterator[Problem]:
    motor = robot.motors.get(joint.drive.motor)
    limit = joint.limits.current_max_a
    if motor is not None and limit > motor.current_max_a:
        expected = f"at most {motor.current_max_a}, the {joint.drive.motor}'s current_max_a"
        yield Problem(f"{path}.limits.current_max_a", show(limit), expected)


def _check_direction(joint: Joint, path: str) -> Iterator[Problem]:
    if joint.drive.direction not in (1, -1):
        yield Problem(f"{path}.drive.direction", show(joint.drive.direction), "1 or -1")


def _check_positions(joint: Joint, path: str) -> Iterator[Problem]:
    low, high = joint.limits.position_min_rad, joint.limits.position_max_rad
    if not low < high:
        yield Problem(
            f"{path}.limits.position_min_rad", show(low), f"less than position_max_rad = {high}"
        )


def _check_bench(joint: Joint, path: str) -> Iterator[Problem]:
    low, high = joint.bench.speed_min_rad_s, joint.bench.speed_max_rad_s
    limit = joint.limits.velocity_max_rad_s
    if high is not None and high > limit:
        expected = f"at most velocity_max_rad_s = {limit}"
        yield Problem(f"{path}.bench.speed_max_rad_s", show(high), expected)
    highest = limit if high is None else high
    if low is not None and not low < highest:
        expected = f"less than the highest speed, {highest}"
        yield Problem(f"{path}.bench.speed_min_rad_s", show(low), expected)


def _check_parts(joint: Joint, path: str, joint_count: int) -> Iterator[Problem]:
    """An arm's joint has a placement and a link; a single joint on the bench a load instead."""
    parts = {"placement": joint.placement, "link": joint.link}
    if joint.load_inertia_kg_m2 is None:
        for key, part in parts.items():
            if part is None:
                yield Problem(f"{path}.{key}", "missing", f"the {key} of every joint of an arm")
    elif joint_count > 1 or joint.link is not None or joint.placement is not None:
        yield Problem(
            f"{path}.load_inertia_kg_m2",
            show(joint.load_inertia_kg_m2),
            "this key only for a single joint without placement and link (on the bench)",
        )


def _check_inertia(joint: Joint, path: str) -> Iterator[Problem]:
    if joint.link is not None and not is_positive_definite(pseudo_inertia(joint.link)):
        yield Problem(f"{path}.link", _show_link(joint.link), "values that a rigid body can have")


def _show_link(link: Link) -> str:
    inertia = ", ".join(f"{key} {getattr(link.inertia_kg_m2, key)}" for key in ("xx", "yy", "zz"))
    return f"mass {link.mass_kg} with inertia {inertia} (pseudo-inertia not positive definite)"


def _check_kinematics(joints: Sequence[Joint]) -> Iterator[Problem]:
    """DH rows, where given, are given for every joint and place the axes where the placements do.

    The base frame is free: it may lie anywhere along the first axis. The axes are compared as seen
    from the frame that the last joint turns, so that this frame is compared as well.
    """
    if all(joint.dh is None for joint in joints):
        return
    for index, joint in enumerate(joints):
        if joint.dh is None:
            yield Problem(f"joints[{index}].dh", "missing", "a row for every joint or for none")
    rows = [joint.dh for joint in joints if joint.dh is not None]
    placements = [joint.placement for joint in joints if joint.placement is not None]
    if not len(rows) == len(placements) == len(joints):
        return
    generator = random.Random(0)
    deviation = [0.0] * len(joints)
    for _ in range(3):
        posture = [generator.uniform(-math.pi, math.pi) for _ in joints]
        pairs = zip(axes_by_dh(rows, posture), axes_by_placement(placements, posture), strict=True)
        for index, (by_dh, by_placement) in enumerate(pairs):
            deviation[index] += math.dist(by_dh, by_placement)
    wrong = [index for index, total in enumerate(deviation) if not total <= KINEMATIC_TOLERANCE]
    if wrong:
        # Seen from the end, a wrong pose spoils every axis before it: only the last one counts.
        index = wrong[-1]
        found = f"its axis is {deviation[index]:.2g} off between placements and dh rows"
        expected = (
            f"within {KINEMATIC_TOLERANCE}, seen from the last joint's frame (dh may be left out)"
        )
        yield Problem(f"joints[{index}]", found, expected)


def _check_published(
    published: Sequence[PublishedParameters], joints: Sequence[object]
) -> Iterator[Problem]:
    length = NUMBERS_PER_JOINT * len(joints)
    for index, parameters in enumerate(published):
        with contextlib.suppress(UnreadableError):
            if len(parameters.values) != length:
                yield Problem(
                    f"published_parameters[{index}].values",
                    f"{len(parameters.values)} numbers",
                    f"{length}: {NUMBERS_PER_JOINT} for each of {len(joints)} joints",
                )
