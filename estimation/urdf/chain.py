"""The chain of turning joints in a URDF, and what each of them carries. Pure computation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from estimation.errors import UrdfError
from estimation.types import FloatArray
from estimation.urdf.tree import NUMBER_MAX, Body, Tree, UrdfJoint

_SOLUTION = "choose the chain with --tip LINK or hold joints with --lock JOINT=VALUE"
_TURNING = ("revolute", "continuous")


@dataclass(frozen=True, slots=True)
class ChainJoint:
    """A joint that turns about z of its own frame.

    Attributes:
        joint: As the URDF states it.
        pose: Its frame in the turned one of the joint before it, shape (4, 4).
        bodies: What it carries, in its turned frame: the link and everything fixed to it.
    """

    joint: UrdfJoint
    pose: FloatArray
    bodies: tuple[Body, ...]


def make_chain(
    tree: Tree, source: str, *, tip: str | None, lock: Mapping[str, float]
) -> tuple[list[ChainJoint], list[str]]:
    """Find the chain and merge what does not move on its own into its links.

    Args:
        tree: The URDF.
        source: What to call it in an error.
        tip: The chain leads to this link; joints elsewhere are held at 0. By default all joints
            that move must lie in one chain.
        lock: Joints to hold, and where (rad or m).

    Returns:
        The chain from the base outwards, and warnings.

    Raises:
        UrdfError: The joints that move are not a chain of turning ones; names those in the way.
    """
    warnings: list[str] = []
    held = _check_locks(tree, source, lock)
    free = [joint for joint in tree.joints.values() if joint.kind != "fixed"]
    free = [joint for joint in free if joint.name not in held]
    if tip is not None:
        way = _way_to(tree, tip, source)
        aside = [joint for joint in free if joint.name not in way]
        held |= _hold(aside, held)
        if aside:
            values = ", ".join(f"{joint.name} at {held[joint.name]:g}" for joint in aside)
            warnings.append(f"held, as they do not lie on the way to {tip}: {values}")
        free = [joint for joint in free if joint.name in way]
    wrong = [
        f"{joint.name} ({'mimic' if joint.mimic else joint.kind})"
        for joint in free
        if joint.mimic is not None or joint.kind not in _TURNING
    ]
    if wrong:
        problem = f"joints that cannot be part of the chain: {', '.join(wrong)}; {_SOLUTION}"
        raise UrdfError(source, problem, code="unsupported-joint")
    if not free:
        raise UrdfError(
            source, "no joint is left that turns, expected at least one", code="no-joint-left"
        )
    names = {joint.name for joint in free}
    chain: list[ChainJoint] = []
    link, frame = tree.root, np.eye(4)
    while True:
        attached = list(_attached(tree, link, frame, held))
        if chain:
            bodies = tuple(
                _moved(body, pose)
                for name, pose in attached
                if (body := tree.links[name]) is not None
            )
            chain[-1] = ChainJoint(chain[-1].joint, chain[-1].pose, bodies)
        following = [
            (joint, pose)
            for name, pose in attached
            for joint in tree.carried[name]
            if joint.name in names
        ]
        if not following:
            return chain, warnings
        if len(following) > 1:
            branches = ", ".join(joint.name for joint, _ in following)
            raise UrdfError(
                source, f"the arm branches at {link}: {branches}; {_SOLUTION}", code="arm-branches"
            )
        ((joint, pose),) = following
        turn = _from_z_to(joint.axis)
        chain.append(ChainJoint(joint, pose @ joint.origin @ turn, ()))
        link, frame = joint.child, turn.T


def _check_locks(tree: Tree, source: str, lock: Mapping[str, float]) -> dict[str, float]:
    for name, value in lock.items():
        joint = tree.joints.get(name)
        if joint is None:
            known = ", ".join(j.name for j in tree.joints.values() if j.kind != "fixed")
            raise UrdfError(
                source,
                f"--lock {name}: no such joint, expected one of {known}",
                code="no-such-joint",
            )
        if joint.kind == "fixed":
            raise UrdfError(source, f"--lock {name}: it is fixed already", code="already-fixed")
        is_sensible = abs(value) <= NUMBER_MAX
        if not is_sensible or (value and joint.kind in ("floating", "planar")):
            expected = f"a finite number of at most {NUMBER_MAX:g}"
            if is_sensible:
                expected = "0 for a joint of that kind"
            raise UrdfError(
                source, f"--lock {name}={value}: expected {expected}", code="out-of-range"
            )
    held = dict(lock)
    # What follows a joint that is held stands still as well.
    followers = [j for j in tree.joints.values() if j.mimic and j.name not in held]
    for joint in followers:
        if joint.mimic is not None and joint.mimic[0] in lock:
            master, factor, offset = joint.mimic
            held[joint.name] = factor * lock[master] + offset
    return held


def _hold(joints: list[UrdfJoint], held: Mapping[str, float]) -> dict[str, float]:
    """Return where joints stand that no option holds: at 0, or where the joint they mimic is."""
    values = {}
    for joint in joints:
        master, factor, offset = joint.mimic or ("", 0.0, 0.0)
        values[joint.name] = factor * held.get(master, 0.0) + offset
    return values


def _way_to(tree: Tree, tip: str, source: str) -> set[str]:
    """Return the names of the joints between the base and a link."""
    if tip not in tree.links:
        raise UrdfError(
            source,
            f"--tip {tip}: no such link, expected one of {', '.join(tree.links)}",
            code="no-such-link",
        )
    mover = {joint.child: joint for joint in tree.joints.values()}
    way, link = set(), tip
    while link in mover:
        way.add(mover[link].name)
        link = mover[link].parent
    return way


def _attached(
    tree: Tree, link: str, frame: FloatArray, held: Mapping[str, float]
) -> Iterator[tuple[str, FloatArray]]:
    """Yield a link and all that is fixed to it, with the pose of each."""
    waiting = [(link, frame)]
    while waiting:
        name, pose = waiting.pop()
        yield name, pose
        for joint in tree.carried[name]:
            if joint.kind == "fixed" or joint.name in held:
                waiting.append((joint.child, pose @ joint.displacement(held.get(joint.name, 0.0))))


def _moved(body: Body, pose: FloatArray) -> Body:
    turn = pose[:3, :3]
    centre = turn @ body.centre_m + pose[:3, 3]
    return Body(body.mass_kg, centre, turn @ body.inertia_kg_m2 @ turn.T)


def _from_z_to(axis: FloatArray) -> FloatArray:
    """Return the shortest turn that takes z to an axis, shape (4, 4); about x if there are many."""
    pose = np.eye(4)
    x, y, z = axis
    sine = math.hypot(x, y)
    if sine < 1e-12:
        pose[1, 1] = pose[2, 2] = math.copysign(1.0, z)
        return pose
    # Rodrigues' formula about the unit vector (−y, x, 0)/sine.
    cross = np.cross(np.eye(3), np.array([-y, x, 0.0]) / sine)
    pose[:3, :3] += sine * cross + (1.0 - z) * (cross @ cross)
    return pose
