"""Checks of an arm: where its joints are, what its links weigh and within which bounds."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from daq.robot.bodies import Link, LinkBounds
from daq.robot.description import Joint, Robot
from daq.robot.geometry import (
    axes_of,
    is_invertible,
    is_positive_definite,
    placement_pose,
    pseudo_inertia,
    row_poses,
)
from daq.robot.reading import Mistake, show

KINEMATIC_TOLERANCE = 1e-6
"""How far placements and DH rows may disagree: metres, and radians times a metre."""


def check_parts(joint: Joint, path: str, robot: Robot, *, is_driven: bool) -> Iterator[Mistake]:
    """Check that an arm's joint has a place, a driven one a link, and one on the bench a load."""
    if joint.load_inertia_kg_m2 is None:
        # Frames of placements and of DH rows differ: a chain of both would be neither.
        is_placed = all(j.placement is None and j.dh is not None for j in robot.joints)
        if joint.placement is None and not is_placed:
            expected = "the placement of every joint of an arm, or of none and dh rows for all"
            yield Mistake(f"{path}.placement", "missing", expected)
        if joint.link is None and is_driven:
            yield Mistake(f"{path}.link", "missing", "the link of every joint of an arm")
    elif len(robot.joints) > 1 or joint.link is not None or joint.placement is not None:
        yield Mistake(
            f"{path}.load_inertia_kg_m2",
            show(joint.load_inertia_kg_m2),
            "this key only for a single joint without placement and link (on the bench)",
        )


def check_inertia(joint: Joint, path: str) -> Iterator[Mistake]:
    """Check that a link has the parameters of a rigid body."""
    if joint.link is not None and not is_positive_definite(pseudo_inertia(joint.link)):
        yield Mistake(f"{path}.link", _show_link(joint.link), "values that a rigid body can have")


def _show_link(link: Link) -> str:
    inertia = ", ".join(f"{key} {getattr(link.inertia_kg_m2, key)}" for key in ("xx", "yy", "zz"))
    return f"mass {link.mass_kg} with inertia {inertia} (pseudo-inertia not positive definite)"


def check_kinematics(robot: Robot) -> Iterator[Mistake]:
    """Check that DH rows are given for all joints or none, and agree with the placements.

    The base frame is free: it may lie anywhere along the first axis. The axes are compared as seen
    from the frame that the last joint turns, so that this frame is compared as well.
    """
    joints = robot.joints
    if all(joint.dh is None for joint in joints):
        return
    for index, joint in enumerate(joints):
        if joint.dh is None:
            yield Mistake(f"joints[{index}].dh", "missing", "a row for every joint or for none")
    rows = [joint.dh for joint in joints if joint.dh is not None]
    placements = [joint.placement for joint in joints if joint.placement is not None]
    if not len(rows) == len(placements) == len(joints):
        return
    by_rows = row_poses(rows, robot.dh_convention)
    placed = [placement_pose(placement) for placement in placements]
    generator = random.Random(0)
    deviation = [0.0] * len(joints)
    for _ in range(3):
        posture = [generator.uniform(-math.pi, math.pi) for _ in joints]
        pairs = zip(axes_of(by_rows, posture), axes_of(placed, posture), strict=True)
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
        yield Mistake(f"joints[{index}]", found, expected)


def check_coupling(robot: Robot) -> Iterator[Mistake]:
    """Check that motor angles determine joint angles; the loop drives only uncoupled joints."""
    if robot.coupling is None:
        return
    count = len(robot.joints)
    rows = robot.coupling
    if len(rows) != count:
        yield Mistake("coupling", show(rows), f"{count} rows, one per joint")
    for index, row in enumerate(rows):
        if len(row) != count:
            yield Mistake(f"coupling[{index}]", show(row), f"{count} numbers, one per joint")
    if all(len(row) == len(rows) == count for row in rows) and not is_invertible(rows):
        yield Mistake("coupling", "a matrix without inverse", "one that can be inverted")
    if robot.boards:
        expected = "no coupling beside boards: the loop cannot drive coupled joints"
        yield Mistake("coupling", show(rows), expected)


def check_bounds(joint: Joint, path: str) -> Iterator[Mistake]:
    """Check that bounds leave room, and that the link's own parameters lie within them."""
    bounds, link, path = joint.bounds, joint.link, f"{path}.bounds"
    if bounds is None:
        return
    mass = None if link is None else link.mass_kg
    yield from _check_interval(
        bounds.mass_min_kg, bounds.mass_max_kg, mass, path=path, name="mass", end="_kg"
    )
    yield from _check_together(bounds, path)
    centre = None if link is None else [part / link.mass_kg for part in link.first_moment_kg_m]
    low, high = bounds.centre_of_mass_min_m, bounds.centre_of_mass_max_m
    if low is not None and high is not None:
        for axis, (least, most) in enumerate(zip(low, high, strict=True)):
            own = None if centre is None else centre[axis]
            end = f"_m[{axis}]"
            yield from _check_interval(least, most, own, path=path, name="centre_of_mass", end=end)
    middle, semi_axes = bounds.ellipsoid_centre_m, bounds.ellipsoid_semi_axes_m
    if centre is not None and middle is not None and semi_axes is not None:
        parts = zip(centre, middle, semi_axes, strict=True)
        if math.hypot(*((own - mid) / semi for own, mid, semi in parts)) >= 1.0:
            shown = ", ".join(f"{part:.4g}" for part in centre)
            expected = f"an ellipsoid around the link's own centre of mass, {shown}"
            yield Mistake(f"{path}.ellipsoid_semi_axes_m", show(semi_axes), expected)


def check_total_mass(robot: Robot) -> Iterator[Mistake]:
    """Check that bounds of the arm's mass leave room, and that the links' masses fit."""
    low, high = robot.estimation.total_mass_min_kg, robot.estimation.total_mass_max_kg
    masses = [joint.link.mass_kg for joint in robot.joints if joint.link is not None]
    own = sum(masses) if masses and len(masses) == len(robot.joints) else None
    yield from _check_interval(low, high, own, path="estimation", name="total_mass", end="_kg")


def _check_interval(
    low: float | None, high: float | None, own: float | None, *, path: str, name: str, end: str
) -> Iterator[Mistake]:
    if low is not None and high is not None and not low < high:
        yield Mistake(f"{path}.{name}_min{end}", show(low), f"less than {name}_max = {high}")
        return
    if own is not None and low is not None and own < low:
        expected = f"at most the robot file's own value, {own:.4g}"
        yield Mistake(f"{path}.{name}_min{end}", show(low), expected)
    if own is not None and high is not None and own > high:
        expected = f"at least the robot file's own value, {own:.4g}"
        yield Mistake(f"{path}.{name}_max{end}", show(high), expected)


def _check_together(bounds: LinkBounds, path: str) -> Iterator[Mistake]:
    for one, other in (
        ("centre_of_mass_min_m", "centre_of_mass_max_m"),
        ("ellipsoid_centre_m", "ellipsoid_semi_axes_m"),
    ):
        for here, there in ((one, other), (other, one)):
            if getattr(bounds, here) is None and getattr(bounds, there) is not None:
                yield Mistake(f"{path}.{here}", "missing", f"this key together with {there}")
