"""The plan of a bench test that options of the command line ask for, and the mock's truth."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Self

from daq.bench.plan import BenchPlan, SweepOverrides, make_plan
from daq.boards.wire_limits import board_profile
from daq.boards.wire_range import wire_range
from daq.errors import ConfigError
from daq.recording.bench_events import LoadArm, MockTruth
from daq.robot import DrivenJoint, DrivenRobot, parse_robot, robot_text
from daq.robot.editing.edit import bench_text
from hw_mocks.plants.effects import parse_effects
from hw_mocks.plants.truth import draw_truth
from tools.running.mock_options import joint_seed
from tools.running.options import MockOptions

PLATEAUS_MIN = 5
DWELL_LONGEST_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions:
    """What is measured on the bench.

    Attributes:
        joint: Name of the joint.
        is_mounted: Whether it is part of the arm and moves within its range.
        load_arm: Mass in kg and distance in m of a weight that hangs on it.
        wishes: The sweep, in place of the robot file's.
    """

    joint: str
    is_mounted: bool
    load_arm: tuple[float, float] | None
    wishes: SweepOverrides

    @classmethod
    def from_namespace(cls, arguments: argparse.Namespace) -> Self:
        """Return the options of `armature bench friction` that are about the test itself."""
        return cls(
            joint=arguments.joint,
            is_mounted=arguments.mounted,
            load_arm=None if arguments.load_arm is None else tuple(arguments.load_arm),
            wishes=SweepOverrides(
                speed_min_rad_s=arguments.speed_min,
                speed_max_rad_s=arguments.speed_max,
                speeds=arguments.speeds,
                repetitions=arguments.repetitions,
                dwell_s=arguments.dwell,
                settle_max_s=arguments.settle_max,
                kp_a_per_rad=arguments.kp,
                kd_a_s_per_rad=arguments.kd,
            ),
        )

    @property
    def name(self) -> str:
        """Of the files of this test."""
        suffix = "_mounted" if self.is_mounted else "_load_arm" if self.load_arm else ""
        return f"{self.joint}{suffix}"

    def seed_of_mock(self, seed: int) -> int:
        """Of the mock that the test drives: a joint that was unmounted is a robot of its own."""
        return seed if self.is_mounted else joint_seed(seed, self.joint)


def plan_bench(
    robot: DrivenRobot,
    joint: DrivenJoint,
    test: BenchOptions,
    mock: MockOptions,
    *,
    is_on_mock: bool,
) -> BenchPlan:
    """Plan the test; the mock's seed also orders the speeds.

    Raises:
        ConfigError: An option is beyond a limit.
        MockConfigError: The mock's effects cannot be read.
    """
    port = next(port for port in robot.boards if port.name == joint.drive.board)
    profile = board_profile(port, mock.profile)
    arm = test.load_arm
    plan = make_plan(
        robot,
        joint,
        test.wishes,
        seed=mock.seed,
        is_mounted=test.is_mounted,
        is_reference_held=not profile.behaviour.is_reference_advanced,
        load_arm=None if arm is None else LoadArm(mass_kg=arm[0], length_m=arm[1]),
        truth=_mock_truth(robot, joint, test, mock) if is_on_mock else None,
        wire=wire_range(robot, joint, profile.behaviour),
    )
    longest_s = max((plateau.dwell_s for plateau in plan.plateaus), default=0.0)
    if longest_s > DWELL_LONGEST_S:
        problem = (
            f"--speed-min: its plateau, a whole motor turn, takes {longest_s:.3g} s, at most "
            f"{DWELL_LONGEST_S:g} s are allowed"
        )
        raise ConfigError(f"bench of joint {joint.name}", [problem])
    if arm is None and len(plan.plateaus) < PLATEAUS_MIN:
        problem = (
            f"--speeds, --repetitions: {len(plan.plateaus)} plateaus, at least {PLATEAUS_MIN} are "
            "needed for a result"
        )
        raise ConfigError(f"bench of joint {joint.name}", [problem])
    return plan


def _mock_truth(
    robot: DrivenRobot, joint: DrivenJoint, test: BenchOptions, mock: MockOptions
) -> MockTruth:
    """Return what a mock's result will be judged by, as Table 4.3 lumps it."""
    effects = parse_effects(mock.effects)
    if not test.is_mounted:
        text = bench_text(robot_text(mock.robot), joint.name, source=mock.robot)
        robot = parse_robot(text, mock.robot).driven()
    drawn = draw_truth(robot, seed=test.seed_of_mock(mock.seed), spread=mock.spread)
    true = next(other for other in drawn.joints if other.name == joint.name)
    drive, motor = joint.drive, robot.motor_of(joint)
    coulomb_nm = true.coulomb_joint_nm + true.coulomb_motor_nm * drive.torque_ratio
    remaining = 1.0 - effects.torque_constant_drop
    return MockTruth(
        b_eq_nms=true.viscous_motor_nm_s_per_rad
        + true.viscous_joint_nm_s_per_rad / drive.inertia_ratio,
        f_nm=coulomb_nm,
        breakaway_nm=coulomb_nm * (1.0 + effects.stribeck),
        inertia_kg_m2=true.rotor_inertia_kg_m2 + true.load_inertia_kg_m2 / drive.inertia_ratio,
        torque_constant_nm_per_a=motor.torque_constant_nm_per_a,
        saturation_per_a2=(remaining**-2 - 1.0) / motor.current_max_a**2,
    )
