"""A whole mock robot: every board of the robot file, in step with one simulated physics.

Each motor's law, the physics and the boards' clocks advance together in steps of 250 µs. Callers
of `advance_to` decide what time is: a virtual clock in a test, the monotonic clock in `realtime`.
"""

from __future__ import annotations

from operator import add

import numpy as np

from daq.robot import BoardPort, DrivenJoint, DrivenRobot
from firmware_protocol.behaviour import IdleIntegral
from firmware_protocol.errors import UnknownNameError
from firmware_protocol.profile import Profile
from firmware_protocol.profiles import profile_named
from hw_mocks.boards.board import MockBoard
from hw_mocks.boards.motor_output import Connection, MotorOutput
from hw_mocks.errors import MockConfigError
from hw_mocks.plants.actuator import Actuator, make_actuators
from hw_mocks.plants.effects import PRESETS, Effects
from hw_mocks.plants.hand import Hand
from hw_mocks.plants.load_arm import MockLoadArm
from hw_mocks.plants.plant import make_plant
from hw_mocks.plants.truth import Truth, draw_truth

STEP_NS = 250_000
_STEP_S = STEP_NS * 1e-9


class MockRobot:
    """Mock boards and what their motors turn.

    The truth is drawn around the description's CAD values, and everything random follows from the
    seed. By default each board pretends its own firmware, and the arm starts hanging. Calibrations
    last and begin as late as the firmware's, unless a duration is given: then they begin at once.
    What `arm` does with its integral while Ki = 0 is not known: `idle_integral` says. Time-outs of
    commands count as `timeout_min_ms` at least. A `hand` turns the motors now and then.

    Attributes:
        truth: The true parameters, to judge a result by; recordings must not describe the
            robot with it. A load arm is not part of it.
        load_arm: What hangs on the output of a joint on the bench.
        effects: What the identification does not model.
        boards: In the robot file's order.
    """

    def __init__(
        self,
        robot: DrivenRobot,
        *,
        profile: str | None = None,
        seed: int = 0,
        effects: Effects = PRESETS["default"],
        spread: float = 0.25,
        calibration_s: float | None = None,
        idle_integral: IdleIntegral = IdleIntegral.CLEARED,
        timeout_min_ms: int = 0,
        posture_rad: tuple[float, ...] | None = None,
        load_arm: MockLoadArm | None = None,
        hand: Hand | None = None,
    ) -> None:
        self.robot = robot
        self._hand = hand
        self.load_arm = load_arm
        self.effects = effects
        self.truth: Truth = draw_truth(robot, seed=seed, spread=spread)
        self.plant = make_plant(
            robot, self.truth, effects, step_s=_STEP_S, posture_rad=posture_rad, load_arm=load_arm
        )
        self._now_ns = 0
        # Streams of their own, so that switching one effect off leaves the others as they were.
        # The second is spent on nothing, so that a seed goes on meaning the same robot.
        phases, _, *per_board = np.random.SeedSequence(seed).spawn(2 + len(robot.boards))
        actuators = make_actuators(robot, effects, np.random.default_rng(phases), step_s=_STEP_S)
        self._calibration_s = calibration_s
        self._idle_integral = idle_integral
        self._timeout_min_ms = timeout_min_ms
        self.boards: tuple[MockBoard, ...] = tuple(
            self._make_board(port, _profile(profile or port.profile, port), actuators, stream)
            for port, stream in zip(robot.boards, per_board, strict=True)
        )
        outputs = [output for board in self.boards for output in board.outputs]
        connected = {o.connection.joint_index: o for o in outputs if o.connection is not None}
        self._driven = [connected[number] for number in range(len(robot.joints))]
        self._unconnected = [output for output in outputs if output.connection is None]
        for output, position_rad in zip(self._driven, self.plant.motor_position_rad, strict=True):
            output.place(position_rad)

    @property
    def now_ns(self) -> int:
        """How far the simulation has come."""
        return self._now_ns

    def advance_to(self, time_ns: int) -> None:
        """Simulate up to a moment, in whole steps."""
        while self._now_ns + STEP_NS <= time_ns:
            self.step()

    def step(self) -> None:
        """Simulate one step."""
        plant = self.plant
        torques_nm = [output.drive_torque_nm() for output in self._driven]
        if self._hand is not None:
            torques_nm = self._with_hand(torques_nm, self._hand)
        plant.step(torques_nm)
        for output in self._unconnected:
            output.drive_torque_nm()
        turning = zip(
            self._driven, plant.motor_position_rad, plant.motor_velocity_rad_s, strict=True
        )
        for output, position_rad, velocity_rad_s in turning:
            output.sense(position_rad, velocity_rad_s)
        self._now_ns += STEP_NS
        for board in self.boards:
            board.tick(self._now_ns)

    def _with_hand(self, torques_nm: list[float], hand: Hand) -> list[float]:
        plant = self.plant
        pushes_nm = hand.torques_nm(
            self._now_ns, plant.motor_position_rad, plant.motor_velocity_rad_s
        )
        return torques_nm if pushes_nm is None else list(map(add, torques_nm, pushes_nm))

    def _make_board(
        self,
        port: BoardPort,
        profile: Profile,
        actuators: list[Actuator],
        stream: np.random.SeedSequence,
    ) -> MockBoard:
        own, *per_output = (np.random.default_rng(part) for part in stream.spawn(3))

        def output(joint: DrivenJoint | None, generator: np.random.Generator) -> MotorOutput:
            connection = None
            if joint is not None:
                number = self.robot.joints.index(joint)
                motor = self.robot.motor_of(joint)
                connection = Connection(number, motor, joint.drive, actuators[number])
            return MotorOutput(
                connection,
                profile.behaviour,
                self.effects,
                generator,
                step_s=_STEP_S,
                bus_nominal_v=self.robot.bus.nominal_v,
                calibration_s=self._calibration_s,
                idle_integral=self._idle_integral,
            )

        first, second = map(output, self.robot.joints_on(port), per_output)
        return MockBoard(
            port.name,
            profile,
            (first, second),
            bus_nominal_v=self.robot.bus.nominal_v,
            step_ns=STEP_NS,
            generator=own,
            clock_hz=port.spi.speed_hz,
            timeout_min_ms=self._timeout_min_ms,
            is_calibration_prompt=self._calibration_s is not None,
        )


def _profile(name: str, port: BoardPort) -> Profile:
    try:
        return profile_named(name)
    except UnknownNameError as error:
        raise MockConfigError(f"board {port.name}", [str(error)]) from error
