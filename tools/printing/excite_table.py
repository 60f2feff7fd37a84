"""Tables of an excitation, for people."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from daq.robot import Robot
from estimation.excitation.search import Excitation
from tools.shared.cli import make_console

_PER_JOINT = {
    "position_min": "least\nrad",
    "position_max": "most\nrad",
    "velocity": "speed\nrad/s",
    "acceleration": "accel.\nrad/s²",
    "torque": "torque\nN·m",
    "current": "current\nA",
}
_CLEARANCES = {"link_clearance": "between links", "ground_clearance": "above the ground"}


def show_excitation(found: Excitation, *, robot: Robot, seconds: float) -> None:
    """Print the tables."""
    console = make_console()
    console.print(_summary(found, robot, seconds))
    console.print(_limits(found, robot))


def _summary(found: Excitation, robot: Robot, seconds: float) -> Table:
    settings, coverage = found.settings, found.coverage
    purpose = "Validation" if settings.is_validation else "Identification"
    table = Table(show_header=False, title=f"{purpose} trajectory for robot {escape(robot.name)}")
    table.add_row(
        "motion",
        f"{found.motion.t_s[-1]:g} s, {settings.harmonics} harmonics of "
        f"{found.trajectory.f0_hz:g} Hz",
    )
    table.add_row(
        "condition number",
        f"{found.condition:.1f}; {found.condition_scaled:.1f} with columns of length 1",
    )
    table.add_row("base parameters", f"{found.rank} of {found.parameters}")
    box = zip("xyz", coverage.tip_min_m, coverage.tip_max_m, strict=True)
    table.add_row(
        "tip within", ", ".join(f"{axis} {low:.2f} to {high:.2f} m" for axis, low, high in box)
    )
    table.add_row(
        "tip visits",
        f"{coverage.voxel_percent:.0f} % of the cubes of {coverage.voxel_m:.2f} m in reach",
    )
    for limit in found.limits:
        if limit.name in _CLEARANCES:
            table.add_row(
                _CLEARANCES[limit.name],
                f"{limit.reached:.3f} m, at least {limit.limit:g} ({escape(limit.joint)})",
            )
    table.add_row(
        "search",
        f"{found.evaluations} trajectories tried in {seconds:.1f} s, seed {settings.seed}, "
        f"{settings.objective}",
    )
    return table


def _limits(found: Excitation, robot: Robot) -> Table:
    by_place = {(limit.name, limit.joint): limit for limit in found.limits}
    names = [name for name in _PER_JOINT if any(limit.name == name for limit in found.limits)]
    is_predicted = "; torque and current by CAD" if "torque" in names else ""
    table = Table(title=f"What is reached, and the limit less its margin{is_predicted}")
    table.add_column("joint")
    for name in names:
        table.add_column(_PER_JOINT[name], justify="right")
    table.add_column("range\n%", justify="right")
    for joint in robot.joints:
        limits = [by_place.get((name, joint.name)) for name in names]
        reached = ["" if limit is None else f"{limit.reached:.3g}" for limit in limits]
        allowed = ["" if limit is None else f"{limit.limit:.3g}" for limit in limits]
        share = f"{found.coverage.joint_percent[joint.name]:.0f}"
        table.add_row(escape(joint.name), *reached, share)
        table.add_row("  limit", *allowed, "", style="dim", end_section=True)
    return table
