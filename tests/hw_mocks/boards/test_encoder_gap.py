"""The fault `encoder-gap`: a board sees its encoders stand still while the rotors turn on."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from board_rig import EM2, IDLE, MS_NS, ON, STATUS, Rig

from daq.robot.description import Robot
from firmware_protocol.fields import FaultCause
from firmware_protocol.profiles import ARM
from hw_mocks.boards.encoder import Encoder
from hw_mocks.clock import VirtualClock
from hw_mocks.faults.script import FaultKind, FaultScript, parse_fault
from hw_mocks.faults.wire import hold_board
from hw_mocks.mock_link import mock_links

GAP = "encoder-gap:at=0.3"
"""Of 50 ms by default; the first reading that is missing is the one after 300 ms."""
POSITION_LSB_RAD = math.tau * 2.0**-24
SPEED_LSB_RAD_S = 1000.0 * math.tau / 60.0 * 2.0**-11
LSB_A = 2.0**-10


class Line:
    """One exchange with every board per millisecond."""

    def __init__(self, rig: Rig, *faults: str) -> None:
        self.rig = rig
        self.script = FaultScript([parse_fault(text) for text in faults])
        self._clock = VirtualClock()
        self._links = mock_links(rig.robot, self._clock, self.script)

    def run(self, count: int, mode: int = ON, **fields: Any) -> list[Any]:
        """The replies of the rig's board."""
        number = self.rig.robot.boards.index(self.rig.board)
        replies = []
        for _ in range(count):
            frame = self.rig.frame(mode=mode, **fields)
            received = [link.exchange(frame) for link in self._links]
            replies.append(self.rig.decode(received[number]))
            self._clock.advance_ns(MS_NS)
        return replies


Turning = Callable[..., Line]


@pytest.fixture
def turning(profile: str, free_bench: Robot) -> Turning:
    """Makes a rotor that turns by itself, at some 55 rad/s; the next exchange is that of 200 ms."""

    def make(*faults: str) -> Line:
        line = Line(Rig(free_bench, profile, effects=IDLE), *faults)
        line.run(100)
        line.run(50, iq_ff_a=0.5)
        line.run(50)
        return line

    return make


def positions_rad(replies: list[Any], motor: int = 0) -> npt.NDArray[np.float64]:
    return np.array([reply.motor_position_rad[motor] for reply in replies])


def test_positions_stand_still_then_jump_to_where_the_rotor_is(turning: Turning) -> None:
    line = turning(GAP)
    seen_rad, true_rad = (positions_rad(each.run(300)) for each in (line, turning()))
    assert true_rad[-1] - true_rad[0] > 10.0
    # The first words of a reply may be those of the one before.
    (frozen_rad,) = set(seen_rad[102:150])
    speed_rad_s = line.rig.robot.plant.motor_velocity_rad_s[0]
    assert abs(frozen_rad - true_rad[100]) < 1.1e-3 * speed_rad_s
    for spared in (slice(0, 100), slice(152, None)):
        assert seen_rad[spared] == pytest.approx(true_rad[spared], abs=2 * POSITION_LSB_RAD)
    (event,) = line.script.events
    assert (event.kind, event.board, event.detail) == (FaultKind.ENCODER_GAP, 0, "for 0.05 s")


def test_the_measured_speed_fades_by_its_filter_and_returns(turning: Turning) -> None:
    speeds = np.array([reply.motor_velocity_rad_s[0] for reply in turning(GAP).run(300)])
    elapsed_s = np.arange(51) * 1e-3
    fading = speeds[100] * np.exp(-math.tau * 100.0 * elapsed_s)
    assert speeds[100:151] == pytest.approx(fading, abs=2 * SPEED_LSB_RAD_S)
    assert speeds[151] > 5 * speeds[100]  # the way of 50 ms, in one
    assert speeds[-1] == pytest.approx(speeds[100], abs=2 * SPEED_LSB_RAD_S)


@pytest.mark.parametrize("kp_a_per_rad", [0.05, 5.0])
def test_the_law_sees_the_same(turning: Turning, kp_a_per_rad: float) -> None:
    line = turning(GAP)
    frozen_rad = line.run(101)[-1].motor_position_rad[0]
    command = {"motor_position_rad": frozen_rad, "kp_a_per_rad": kp_a_per_rad}
    # Two and a half radians away from it at the end, for the law the rotor has not moved.
    blind = line.run(50, **command)
    assert [reply.iq_a[0] for reply in blind] == pytest.approx([0.0] * 50, abs=LSB_A)
    if kp_a_per_rad == 0.05:
        seeing = line.run(8, **command)[-1]
        error_rad = frozen_rad - seeing.motor_position_rad[0]
        assert error_rad < -2.0
        assert seeing.iq_a[0] == pytest.approx(kp_a_per_rad * error_rad, rel=0.02)


def test_a_velocity_loop_pushes_until_it_sees_again(turning: Turning) -> None:
    line = turning(GAP)
    speed_rad_s = line.run(101)[-1].motor_velocity_rad_s[0]
    blind = line.run(50, motor_velocity_rad_s=speed_rad_s, kd_a_s_per_rad=0.01)
    assert blind[-1].iq_a[0] == pytest.approx(0.01 * speed_rad_s, rel=0.01)
    seeing = line.run(50, motor_velocity_rad_s=speed_rad_s, kd_a_s_per_rad=0.01)
    assert min(reply.iq_a[0] for reply in seeing) < 0.0


@pytest.mark.parametrize("gap", ["encoder-gap:at=0,for=1", "encoder-gap:at=0.02,for=0.05"])
def test_no_board_that_turns_its_rotor_calibrates_without_an_encoder(
    profile: str, rig: Callable[..., Rig], gap: str
) -> None:
    line = Line(rig(profile, effects=IDLE), gap)
    status = line.run(100)[-1].status
    behaviour = line.rig.profile.behaviour
    if behaviour.calibration.travel_electrical_turns:
        assert status & 0xF == line.rig.profile.code_of(FaultCause.ENCODER_1)
    else:
        # Nothing turns there, so nothing can be missed.
        assert status & (STATUS["M1R"] | 0xF) == STATUS["M1R"]


@pytest.mark.parametrize("board", [0, 1])
def test_both_encoders_of_one_board(rig: Callable[..., Rig], arm4: Robot, board: int) -> None:
    arm = rig("arm", arm4, board=board, effects=IDLE, calibration_s=0.3)
    line = Line(arm, "encoder-gap:at=0.5,for=0.1,board=1")
    line.run(400, mode=ON | EM2)
    replies = line.run(
        300, mode=ON | EM2, motor_velocity_rad_s=(9.0, 9.0), kd_a_s_per_rad=(0.5, 0.5)
    )
    for motor in (0, 1):
        moves_rad = np.diff(positions_rad(replies, motor))
        assert [not move for move in moves_rad[100:199]] == [board == 1] * 99
        assert moves_rad[50:100].all() and moves_rad[200:].all()


def test_on_a_serial_line_too(rig: Callable[..., Rig], free_bench: Robot) -> None:
    board = rig("arm", free_bench, effects=IDLE)
    board.calibrate()
    script = FaultScript([parse_fault("encoder-gap:at=0.2,for=0.1")])
    seen_rad = []
    for _ in range(400):
        held = hold_board(board.board, script, 0, board.robot.now_ns)
        seen_rad.append((bool(held), board.ask(mode=ON, iq_ff_a=0.2).motor_position_rad[0]))
        board.wait()
    frozen = {position_rad for is_held, position_rad in seen_rad if is_held}
    assert len(frozen) == 1
    assert len({position_rad for is_held, position_rad in seen_rad if not is_held}) > 200


def test_an_index_passed_meanwhile_is_seen_late_and_where_it_is() -> None:
    encoder = Encoder(
        counts_per_turn=4096,
        index_rad=1.0,
        behaviour=ARM.behaviour,
        step_s=250e-6,
    )
    encoder.place(0.0)
    encoder.set_zero()
    encoder.compensate_index(True)
    encoder.is_frozen = True
    for rotor_rad in (0.5, 1.0, 1.5, 2.0):
        encoder.read(rotor_rad)
        assert (encoder.angle_rad, encoder.is_index_found) == (0.0, False)
    encoder.is_frozen = False
    encoder.read(2.0)
    assert encoder.is_index_found
    assert encoder.position_rad == pytest.approx(1.0, abs=math.tau / 4096)
