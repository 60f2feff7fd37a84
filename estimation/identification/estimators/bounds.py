"""What is known of the links beforehand: masses, centres of mass, where their mass can be.

Data alone do not determine single masses: without bounds the fit is as good and the masses absurd.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daq.robot import Joint, Robot
from daq.robot.geometry import joint_poses

CAD_MASS_FACTOR = 3.0
"""Where the robot file bounds no mass, it may be this many times CAD's, or as much less."""
_REACH_FACTOR = 1.5
"""How much further than joints and capsule a link's mass may reach, where no bound is stated."""
_ROOM = 1.001
"""An ellipsoid that only just touches a box would leave room for a point, which is not a body."""


@dataclass(frozen=True, slots=True)
class Ellipsoid:
    """(x − centre)ᵀ·diag(semi_axes)⁻²·(x − centre) ≤ 1, in the joint's frame, in metres."""

    centre_m: tuple[float, float, float]
    semi_axes_m: tuple[float, float, float]

    def grown(self, factor: float) -> Ellipsoid:
        """Return it with semi-axes that many times as long, around the same centre."""
        x, y, z = (factor * axis for axis in self.semi_axes_m)
        return Ellipsoid(self.centre_m, (x, y, z))


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkBound:
    """What is known of one link.

    [RAM 2021] has two ellipsoids, one for all mass and one for the centre of mass. Here is one: the
    centre of mass that is inside an ellipsoid is inside it too, and where it is known better the
    box says so.

    Attributes:
        mass_kg: Least and greatest; None where nothing is known but that it is positive.
        centre_m: Corners of a box for the centre of mass.
        ellipsoid: Contains all of the link's mass.
    """

    mass_kg: tuple[float, float] | None = None
    centre_m: tuple[tuple[float, float, float], tuple[float, float, float]] | None = None
    ellipsoid: Ellipsoid | None = None


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is known of an arm.

    Attributes:
        joint_names: For messages.
        links: One per joint.
        total_mass_kg: Least and greatest; None where nothing is known.
        notes: Where a bound is not the robot file's own.
    """

    joint_names: tuple[str, ...]
    links: tuple[LinkBound, ...]
    total_mass_kg: tuple[float, float] | None
    notes: tuple[str, ...] = ()


def bounds_of(robot: Robot) -> Bounds:
    """Return what a robot file knows.

    Where the file states no bounds for a mass that CAD knows, CAD's within a factor; an ellipsoid
    around joints and capsule where it states none.
    """
    links, without, unknown = [], [], []
    for index, joint in enumerate(robot.joints):
        stated = joint.bounds
        low = stated.mass_min_kg if stated else None
        high = stated.mass_max_kg if stated else None
        mass = None
        if low is not None or high is not None:
            mass = (low or 0.0, np.inf if high is None else high)
        elif joint.link is not None:
            without.append(joint.name)
            cad_kg = joint.link.mass_kg
            mass = (cad_kg / CAD_MASS_FACTOR, cad_kg * CAD_MASS_FACTOR)
        else:
            unknown.append(joint.name)
        centre = None
        if stated and stated.centre_of_mass_min_m and stated.centre_of_mass_max_m:
            centre = (stated.centre_of_mass_min_m, stated.centre_of_mass_max_m)
        links.append(
            LinkBound(mass_kg=mass, centre_m=centre, ellipsoid=_ellipsoid(robot, index, joint))
        )
    settings = robot.estimation
    total = None
    if settings.total_mass_min_kg is not None or settings.total_mass_max_kg is not None:
        high = settings.total_mass_max_kg
        total = (settings.total_mass_min_kg or 0.0, np.inf if high is None else high)
    notes = []
    if without:
        notes.append(
            f"masses of {', '.join(without)} are kept within {CAD_MASS_FACTOR:g} times CAD's: the "
            "robot file states no bounds"
        )
    if unknown:
        notes.append(
            f"masses of {', '.join(unknown)} are not bounded: the robot file states nothing about "
            "them, so single masses mean little"
        )
    return Bounds(tuple(joint.name for joint in robot.joints), tuple(links), total, tuple(notes))


def ellipsoid_factors(bounds: Bounds) -> dict[str, float]:
    """Return how much longer semi-axes must be, and a little more, for ellipsoids to meet boxes.

    Bodies that keep to their ellipsoid and box do so with any mass, so that only the box of the
    same link can contradict an ellipsoid. Mass inside the ellipsoid can have its centre anywhere
    inside: with the box's point p nearest to it, the least factor is ‖diag(semi_axes)⁻¹(p − c)‖.
    No box may be empty. By joint, where there is a contradiction.
    """
    factors = {}
    for name, link in zip(bounds.joint_names, bounds.links, strict=True):
        if link.ellipsoid is None or link.centre_m is None:
            continue
        middle = np.array(link.ellipsoid.centre_m)
        nearest = np.clip(middle, *link.centre_m)
        distance = float(np.linalg.norm((nearest - middle) / link.ellipsoid.semi_axes_m))
        if _ROOM * distance > 1.0 + 1e-9:
            factors[name] = _ROOM * distance
    return factors


def _ellipsoid(robot: Robot, index: int, joint: Joint) -> Ellipsoid | None:
    """Return the stated one; or one around the link's joints, centre of mass and capsule."""
    stated = joint.bounds
    if stated and stated.ellipsoid_centre_m and stated.ellipsoid_semi_axes_m:
        return Ellipsoid(stated.ellipsoid_centre_m, stated.ellipsoid_semi_axes_m)
    link = joint.link
    if link is None:
        return None
    points = [np.zeros(3), np.array(link.first_moment_kg_m) / link.mass_kg]
    if index + 1 < len(robot.joints):
        points.append(joint_poses(robot)[index + 1][:3, 3])
    elif link.tip_m is not None:
        points.append(np.array(link.tip_m))
    low, high = np.min(points, axis=0), np.max(points, axis=0)
    inertia = link.inertia_kg_m2
    # What turns about an axis is at least as far away as its radius of gyration.
    gyration_m = np.sqrt(0.5 * (inertia.xx + inertia.yy + inertia.zz) / link.mass_kg)
    half = 0.5 * (high - low) + link.capsule_radius_m + 0.5 * gyration_m
    axes = _REACH_FACTOR * np.sqrt(3.0) * half  # the ellipsoid around a box
    centre = 0.5 * (low + high)
    return Ellipsoid(
        (float(centre[0]), float(centre[1]), float(centre[2])),
        (float(axes[0]), float(axes[1]), float(axes[2])),
    )
