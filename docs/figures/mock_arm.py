"""The loop of the arm on its mock, in virtual time, with what the motors truly do written down.

The whole loop as `armature loop` runs it, without its processes. Replies say what the boards
measured; what is written down here, every 250 µs, is the physics behind them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from daq.boards.board import Board
from daq.control.torque_model import load_torque_model
from daq.loop.setup import PERIOD_NS, make_loop, make_session
from daq.recording.states import State
from daq.robot import load_robot, robot_text
from daq.robot.description import DrivenRobot
from daq.stream import messages as m
from firmware_protocol import profile_named
from hw_mocks.boards.motor_output import MotorState
from hw_mocks.clock import VirtualClock
from hw_mocks.mock_link import mock_links
from hw_mocks.mock_robot import STEP_NS, MockRobot

ROBOT = "laas4"
STEP_S = STEP_NS * 1e-9
Kind = Literal["brake", "hold", "coast"]
Posture = tuple[float, float, float, float]
HANGING: Posture = (0.0, -math.pi / 2, 0.0, 0.0)
_CALIBRATION_S = 0.3
"""Shorter than a board's, which costs nothing but time here."""
_PATIENCE = 20_000


class MockArm:
    """The arm, enabled and homed, hanging.

    Args:
        profile: Which firmware its boards pretend.
        stop: What the robot file asks a stop to do.
        has_model: Whether the loop knows the arm's weight.
        is_homed: Whether it knows where its joints stand.
    """

    def __init__(
        self,
        profile: str,
        *,
        stop: Kind = "brake",
        has_model: bool = True,
        is_homed: bool = True,
    ) -> None:
        robot = load_robot(ROBOT)
        assert isinstance(robot, DrivenRobot)  # noqa: S101
        safety = msgspec.structs.replace(robot.safety, stop=stop)
        robot = msgspec.structs.replace(robot, safety=safety)
        self.joint_names = [joint.name for joint in robot.joints]
        self._clock = VirtualClock()
        self._mock = MockRobot(
            robot, profile=profile, calibration_s=_CALIBRATION_S, posture_rad=HANGING
        )
        boards = [
            Board(
                port.name,
                profile_named(profile),
                link,
                now_ns=self._clock.now_ns,
                command_timeout_ms=port.command_timeout_ms,
            )
            for port, link in zip(robot.boards, mock_links(self._mock, self._clock), strict=True)
        ]
        session = make_session(
            robot_text(ROBOT),
            ROBOT,
            boards,
            link="mock",
            version="0",
            start_t_ns=0,
            start_utc_ns=0,
            is_virtual=True,
        )
        self._loop = make_loop(
            robot,
            boards,
            session,
            [lambda _header, _payload: None],
            now_ns=self._clock.now_ns,
            utc_ns=self._clock.now_ns,
            profile=profile,
            model=load_torque_model(robot) if has_model else None,
        )
        connected = {
            output.connection.joint_index: output
            for board in self._mock.boards
            for output in board.outputs
            if output.connection is not None
        }
        self._outputs = [connected[number] for number in range(len(robot.joints))]
        self._positions_rad: list[list[float]] = []
        self._currents_a: list[list[float]] = []
        self._are_driven: list[bool] = []
        self._enable(is_homed=is_homed)

    def _enable(self, *, is_homed: bool) -> None:
        self.run(0.003)
        self.send(m.Enable())
        self._until(lambda: self.state is not State.CALIBRATING)
        # What homing would find, without the time that it takes.
        homed = self._loop.cycle.control.tracks if is_homed else []
        for track, output in zip(homed, self._outputs, strict=is_homed):
            axis = track.axis
            offset_rad = axis.joint.drive.joint_offset_rad * axis.motor_per_joint
            axis.set_home(output.encoder.origin_rad + offset_rad)
        self.mode("hold")
        self.run(0.1)

    # --- what happens to it -----------------------------------------------------------------------

    @property
    def state(self) -> State:
        """What the robot does as a whole."""
        return self._loop.cycle.machine.state

    @property
    def is_holding(self) -> bool:
        """Whether a stop holds the posture."""
        return self._loop.cycle.machine.is_holding

    def send(self, command: m.AnyCommand) -> None:
        """Have a command carried out."""
        self._loop.handler(command)

    def mode(self, mode: str, *target: float, joints: Sequence[str] = ()) -> None:
        """Set the mode of some joints, of all by default."""
        self.send(m.SetMode(mode=mode, target=target, joints=tuple(joints), duration_s=0.0))

    def raise_to(self, posture_rad: Posture) -> None:
        """Go to a posture, and stay there."""
        self.mode("position", *posture_rad)
        self._until(lambda: self._loop.cycle.control.is_at_rest)
        self.run(0.5)

    def freeze_encoder(self, joint: int) -> None:
        """Have an encoder stay at its last count, for the board's own law too."""
        self._outputs[joint].encoder.is_frozen = True

    def run(self, duration_s: float) -> None:
        """Let the loop go on."""
        for _ in range(round(duration_s * 1e9 / PERIOD_NS)):
            deadline_ns = self._clock.now_ns() + PERIOD_NS
            self._clock.sleep_until_ns(deadline_ns)
            self._loop.cycle.run(deadline_ns, self._clock.now_ns(), 0)

    def run_without_host(self, duration_s: float) -> None:
        """Let time go on after the loop was killed: no frame comes any more."""
        self._clock.advance_ns(round(duration_s * 1e9))
        self._mock.advance_to(self._clock.now_ns())

    def _until(self, is_so: Callable[[], bool]) -> None:
        for _ in range(_PATIENCE):
            if is_so():
                return
            self.run(1e-9 * PERIOD_NS)
        raise RuntimeError(f"the arm is {self.state.name}: {self._loop.cycle.machine.reason}")

    # --- what it truly does -----------------------------------------------------------------------

    def watch(self) -> None:
        """Write down from now on what the physics does."""
        inner, plant = self._mock.step, self._mock.plant

        def step() -> None:
            inner()
            self._positions_rad.append(list(plant.joint_position_rad))
            self._currents_a.append([output.iq_a for output in self._outputs])
            states = [output.state for output in self._outputs]
            self._are_driven.append(MotorState.RUNNING in states)

        self._mock.step = step  # type: ignore[method-assign]

    @property
    def steps(self) -> int:
        """How many steps of `STEP_S` were written down."""
        return len(self._positions_rad)

    def true_position_rad(self, joint: int) -> npt.NDArray[np.float64]:
        """Return where a joint was after each step."""
        return np.array(self._positions_rad)[:, joint]

    def true_current_a(self, joint: int) -> npt.NDArray[np.float64]:
        """Return what flowed in its motor, in shorted windings too."""
        return np.array(self._currents_a)[:, joint]

    def is_driven(self) -> npt.NDArray[np.bool_]:
        """Return whether any board followed its law after each step, neither off nor in error."""
        return np.array(self._are_driven)
