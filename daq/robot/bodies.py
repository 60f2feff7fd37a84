"""Where the joints of a chain are and what their links weigh. Frozen values, SI units."""

from __future__ import annotations

from daq.robot.tables import (
    Angle,
    Description,
    Metres,
    NotNegative,
    Place,
    Positive,
    PositiveVector3,
    Vector3,
)


class DhRow(Description, frozen=True, kw_only=True):
    """One row of Denavit-Hartenberg parameters; θ = q + `theta_offset_rad`.

    Row i is Rz(θ)·Tz(d)·Tx(a)·Rx(α) in the standard convention; a and α lead on to the next axis.
    In the modified one (Craig) it is Rx(α)·Tx(a)·Rz(θ)·Tz(d); a and α come from the axis before.
    """

    a_m: Metres
    d_m: Metres
    alpha_rad: Angle
    theta_offset_rad: Angle = 0.0


class Placement(Description, frozen=True, kw_only=True):
    """Pose of the joint frame in its parent link, as a URDF states it; the joint turns about z."""

    xyz_m: Place
    rpy_rad: tuple[Angle, Angle, Angle]


class Inertia(Description, frozen=True, kw_only=True):
    """Elements of an inertia matrix about the joint frame's origin (not the centre of mass)."""

    xx: float
    xy: float
    yy: float
    xz: float
    yz: float
    zz: float


class Link(Description, frozen=True, kw_only=True):
    """Rigid-body parameters of a link from CAD, in its joint frame.

    That frame turns with the link, and its z axis is the joint's axis: the frame of `placement`,
    or the one of `daq.robot.geometry.joint_poses` where DH rows place the joints. With modified DH
    that is the DH frame itself; with standard DH it is not.
    """

    mass_kg: Positive
    first_moment_kg_m: Vector3
    """Mass times centre of mass."""
    inertia_kg_m2: Inertia
    capsule_radius_m: Positive = 0.04
    """Radius of the collision capsule."""
    tip_m: Place | None = None
    """Far end of that capsule, in the joint frame; by default the next joint's origin, and twice
    the centre of mass for the last link."""


class LinkBounds(Description, frozen=True, kw_only=True):
    """What an estimate of the link's parameters must respect, in its joint frame."""

    mass_min_kg: NotNegative | None = None
    mass_max_kg: Positive | None = None
    centre_of_mass_min_m: Vector3 | None = None
    """Corner of a box; given together with the opposite one."""
    centre_of_mass_max_m: Vector3 | None = None
    ellipsoid_centre_m: Vector3 | None = None
    """Of an ellipsoid, its axes along the frame's, that contains all of the link's mass."""
    ellipsoid_semi_axes_m: PositiveVector3 | None = None


class JointDynamics(Description, frozen=True, kw_only=True):
    """What a joint's torque has beside its links', at the joint: identified, or from a URDF.

    It goes before what a drive states; zero where nothing is stated.
    """

    viscous_nm_s_per_rad: float | None = None
    coulomb_nm: float | None = None
    drive_inertia_kg_m2: float | None = None
    """The rotor's, times the square of the reduction."""
    offset_nm: float | None = None
    asymmetric_nm_s_per_rad: float | None = None
    """Half of viscous friction forwards less backwards."""
    stribeck_nm: float | None = None
    """Friction beyond Coulomb's at standstill."""
    coupled_viscous_nm_s_per_rad: float | None = None
    """Of the motor of the same number, where other joints turn it as well (`coupling`)."""
    coupled_coulomb_nm: float | None = None
    coupled_drive_inertia_kg_m2: float | None = None
