"""The plant, what the motors turn: the seam between a mock board and its physics."""

from __future__ import annotations

import typing
from collections.abc import Sequence

from daq.robot.description import DrivenRobot
from hw_mocks.errors import MockConfigError
from hw_mocks.plants.bench_plant import BenchPlant
from hw_mocks.plants.effects import BENCH_ONLY, Effects
from hw_mocks.plants.load_arm import MockLoadArm
from hw_mocks.plants.loaded_bench import LoadedBench
from hw_mocks.plants.truth import Truth


class Plant(typing.Protocol):
    """What the motors turn. All motor side; one entry per joint, in the robot's joint order."""

    step_s: float
    """Length of a step, fixed."""
    motor_position_rad: list[float]
    """After the last step; runs on over as many turns as the motor makes."""
    motor_velocity_rad_s: list[float]
    """After the last step."""

    @property
    def joint_position_rad(self) -> list[float]:
        """Where the joints really are, behind play and spring; nobody measures it."""

    def step(self, motor_torque_nm: Sequence[float]) -> None:
        """Move on by one step, with a constant torque on each rotor."""


def make_plant(
    robot: DrivenRobot,
    truth: Truth,
    effects: Effects,
    *,
    step_s: float = 250e-6,
    posture_rad: Sequence[float] | None = None,
    load_arm: MockLoadArm | None = None,
) -> Plant:
    """Return the bench for a single joint without a link, the whole arm in MuJoCo otherwise.

    It starts at rest; by default the arm hangs.

    Raises:
        MockConfigError: This robot cannot be simulated, or cannot have these effects or a load arm,
            or MuJoCo is not installed.
    """
    if posture_rad is not None and len(posture_rad) != len(robot.joints):
        problem = f"posture_rad has {len(posture_rad)} angles for {len(robot.joints)} joints"
        raise MockConfigError(f"mock of robot {robot.name}", [problem])
    asked = [name for name in BENCH_ONLY if getattr(effects, name)]
    if load_arm is not None:
        asked.append("load arm")
    if len(robot.joints) == 1 and robot.joints[0].link is None:
        start_rad = 0.0 if posture_rad is None else posture_rad[0]
        if not asked:
            return BenchPlant(robot, truth, effects, step_s=step_s, joint_position_rad=start_rad)
        return LoadedBench(
            robot, truth, effects, load_arm=load_arm, step_s=step_s, joint_position_rad=start_rad
        )
    if asked:
        problems = [f"{name}: only a joint alone on the bench can have it" for name in asked]
        raise MockConfigError(f"mock of robot {robot.name}", problems)
    try:
        from hw_mocks.plants.arm_plant import ArmPlant  # noqa: PLC0415 - the bench needs no MuJoCo
    except ModuleNotFoundError as error:
        if error.name != "mujoco":
            raise
        problem = "the mock of an arm needs MuJoCo: pip install '.[sim]' in armature's folder"
        raise MockConfigError(f"robot {robot.name}", [problem]) from error
    return ArmPlant(robot, truth, effects, step_s=step_s, posture_rad=posture_rad)
