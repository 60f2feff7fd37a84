"""The true parameters of a mock robot: the values that the identification is to find.

The robot file holds what CAD says; the simulated arm differs from it by a seeded amount. The truth
is handed to the plant and to the judge of a result, never to an estimator, and never enters the
robot description.
"""

from __future__ import annotations

import dataclasses
import math

import msgspec
import numpy as np
import numpy.typing as npt

from daq.robot import DrivenJoint, DrivenRobot, Inertia, Link
from daq.robot.geometry import pseudo_inertia
from hw_mocks.errors import MockConfigError

Matrix = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JointTruth:
    """One joint: the link it moves and the drive that moves it, each in its own side's units."""

    name: str
    link: Link | None
    """In the joint frame, as in the robot file."""
    load_inertia_kg_m2: float
    """Of the output shaft of a joint on the bench (joint side), without a load arm."""
    rotor_inertia_kg_m2: float
    viscous_motor_nm_s_per_rad: float
    coulomb_joint_nm: float
    viscous_joint_nm_s_per_rad: float
    coulomb_motor_nm: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """A simulated robot's true parameters."""

    robot: str
    seed: int
    spread: float
    joints: tuple[JointTruth, ...]

    def as_dict(self) -> dict[str, object]:
        """Return the values for JSON, with units in the names, marked as simulated."""
        return {"simulated": True, **msgspec.to_builtins(self)}


def draw_truth(robot: DrivenRobot, *, seed: int, spread: float = 0.25) -> Truth:
    """Draw true parameters around the robot file's: physically consistent, whatever the seed.

    Links and inertias differ from CAD; friction is exactly what the robot file says. The spread is
    the relative standard deviation of masses and second moments; 0 returns CAD.

    Raises:
        MockConfigError: `spread` is out of range, or a link of the robot file is not physically
            consistent.
    """
    if not 0.0 <= spread <= 1.0:
        raise MockConfigError("mock truth", [f"spread = {spread:g}: must lie between 0 and 1"])
    generator = np.random.default_rng(seed)
    joints = tuple(_draw_joint(robot, joint, generator, spread) for joint in robot.joints)
    return Truth(robot=robot.name, seed=seed, spread=spread, joints=joints)


def _draw_joint(
    robot: DrivenRobot, joint: DrivenJoint, generator: np.random.Generator, spread: float
) -> JointTruth:
    drive = joint.drive
    # Uniform in the logarithm with the standard deviation asked for, so that no draw is absurd.
    rotor, load = np.exp(spread * generator.uniform(-math.sqrt(3), math.sqrt(3), size=2)).tolist()
    change = _draw_symmetric(generator, spread)
    link = joint.link
    if link is not None and spread:
        try:
            link = _change_link(link, change)
        except np.linalg.LinAlgError:
            problem = f"joints.{joint.name}.link: is not physically consistent"
            raise MockConfigError(f"robot {robot.name}", [problem]) from None
    return JointTruth(
        name=joint.name,
        link=link,
        load_inertia_kg_m2=load * (joint.load_inertia_kg_m2 or 0.0),
        rotor_inertia_kg_m2=rotor * drive.rotor_inertia_kg_m2,
        viscous_motor_nm_s_per_rad=drive.friction.viscous_motor_nm_s_per_rad,
        coulomb_joint_nm=drive.friction.coulomb_joint_nm,
        viscous_joint_nm_s_per_rad=drive.friction.viscous_joint_nm_s_per_rad,
        coulomb_motor_nm=drive.friction.coulomb_motor_nm,
    )


def _draw_symmetric(generator: np.random.Generator, spread: float) -> Matrix:
    """Return a symmetric 4×4 matrix S of fixed size and random direction.

    In the ten-dimensional space of such matrices all directions are equally likely, so that uᵀSu
    has the standard deviation `spread` for every unit vector u when ‖S‖ = √10·spread.
    """
    square = generator.standard_normal((4, 4))
    symmetric = (square + square.T) / 2.0
    return spread * math.sqrt(10.0) * symmetric / np.linalg.norm(symmetric)


def _change_link(link: Link, change: Matrix) -> Link:
    """Return the link whose pseudo-inertia is J' = L·exp(S)·Lᵀ, where J = L·Lᵀ is the given one's.

    J' is positive definite for every S.

    The mass and the second moment about any plane are quadratic forms of J; each changes by the
    factor uᵀ·exp(S)·u with a unit vector u, which is why the spread is that of all of them.
    """
    root = np.linalg.cholesky(pseudo_inertia(link))
    eigenvalues, eigenvectors = np.linalg.eigh(change)
    factor = root @ eigenvectors * np.exp(eigenvalues / 2.0)
    moments = factor @ factor.T
    second = moments[1:, 1:]
    trace = float(np.trace(second))
    return msgspec.structs.replace(
        link,
        mass_kg=float(moments[0, 0]),
        first_moment_kg_m=tuple(moments[0, 1:].tolist()),
        inertia_kg_m2=Inertia(
            xx=trace - float(second[0, 0]),
            yy=trace - float(second[1, 1]),
            zz=trace - float(second[2, 2]),
            xy=-float(second[0, 1]),
            xz=-float(second[0, 2]),
            yz=-float(second[1, 2]),
        ),
    )


def inertia_matrix(link: Link) -> Matrix:
    """Return the 3×3 inertia matrix about the joint frame's origin."""
    elements = link.inertia_kg_m2
    return np.array(
        [
            [elements.xx, elements.xy, elements.xz],
            [elements.xy, elements.yy, elements.yz],
            [elements.xz, elements.yz, elements.zz],
        ]
    )
