"""Enabling: what counts as ready, boards that never are, frames that sweep meanwhile."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from loop_rig import ES, Rig, assert_off_at_once, assert_safe_stop

from daq.loop.agenda import Agenda
from daq.loop.safety import machine
from daq.loop.setup import PERIOD_NS
from daq.recording.states import State
from daq.stream import messages as m
from firmware_protocol.codec import reply_codec
from firmware_protocol.profiles import PROFILES, STATUS_BITS
from hw_mocks.boards.motor_output import MotorState
from hw_mocks.clock import VirtualClock

SE = STATUS_BITS["SE"]
READY = {n: STATUS_BITS[f"M{n}E"] | STATUS_BITS[f"M{n}R"] for n in (1, 2)}
every_profile = pytest.mark.parametrize("profile", PROFILES)


# --- ready ----------------------------------------------------------------------------------------


@every_profile
def test_one_motor_on_output_1(profile: str) -> None:
    rig = Rig("bench1", profile=profile)
    assert rig.robot.joints[0].drive.output == 1
    rig.enable().hold(50)
    assert rig.state is State.ACTIVE
    assert rig.replies()[-1].status & READY[1] == READY[1]


@pytest.mark.parametrize("system_bit", [0, SE])
@every_profile
def test_the_system_bit_proves_nothing(profile: str, system_bit: int) -> None:
    rig = Rig("bench1", profile=profile)
    codec = reply_codec(rig.profiles[0])

    def with_system_bit(frame: bytes) -> bytes:
        if not codec.is_sound(frame):
            return frame
        raws = list(codec.decode_raw(frame))
        raws[0] = raws[0] & ~SE | system_bit
        return codec.encode_raw(raws)

    rig.step(3)
    rig.links[0].tamper = with_system_bit
    rig.enable().hold(50)
    assert rig.state is State.ACTIVE
    rig.send(m.Stop())
    rig.end_stop()
    rig.enable()


@pytest.mark.parametrize("missing", [*(STATUS_BITS[name] for name in ("M1E", "M1R")), -1])
def test_what_is_missing_for_ready(missing: int) -> None:
    """The motor is enabled, calibrated, and no error is reported: each of them is needed."""
    rig = Rig("bench1").enable().hold(50)
    (unit,) = rig.cycle.units
    status = unit.status ^ missing if missing > 0 else unit.status | 7
    assert unit.is_ready
    assert unit.replies is not None
    unit.replies = (status, *unit.replies[1:])
    assert not unit.is_ready


# --- boards that do not get ready -----------------------------------------------------------------


@every_profile
def test_a_board_in_error_without_a_code_is_named(profile: str) -> None:
    rig = Rig("bench1", profile=profile)
    rig.step(3)
    rig.mock.boards[0].latch(0)
    rig.step(20)  # idle, which clears other errors on some boards
    rig.send(m.Enable())
    calibration = PROFILES[profile].behaviour.calibration
    limit_s = machine.CALIBRATION_SLACK_S + calibration.duration_s + calibration.late_max_s
    cycles = rig.until(lambda: rig.state is State.FAULT)
    assert cycles == pytest.approx(1000 * limit_s, abs=2)
    decided = rig.now - 1
    rig.step(3)
    assert_off_at_once(rig, decided)
    assert rig.machine.trip_code == "no-current"
    assert "joint1" in rig.machine.reason and "gate driver" in rig.machine.reason


@every_profile
def test_the_time_limit_leaves_room_for_a_late_start(profile: str) -> None:
    """Twice the latest that was seen: 1 s late, 3 s long, the second motor 40 ms after it."""
    rig = Rig("bench1", profile=profile)
    takes_s = 1.0 if profile == "udriver2" else 1.0 + 3.0 + 0.04
    assert rig.machine._calibration_max_s > 2.0 * takes_s


def test_a_long_calibration_is_told_from_a_dead_board(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "CALIBRATION_SLACK_S", 0.0)
    rig = Rig("bench1", calibration_s=8.0)
    rig.step(3)
    rig.send(m.Enable())
    rig.until(lambda: rig.state is State.FAULT)
    assert rig.machine.trip_code == "calibration"


@every_profile
def test_a_fault_of_one_motor_stops_the_robot(profile: str) -> None:
    """On some boards the other motors go on under power: the host must not."""
    rig = Rig("laas4", profile=profile).enable().home_by_truth().hold(100)
    rig.mock.boards[1].latch(7, motor=1)
    others = [output.state for output in rig.outputs[:3]]
    if rig.profiles[1].behaviour.are_faults_per_motor:
        assert others == [MotorState.RUNNING] * 3
    rig.until(lambda: rig.state is State.STOPPING, cycles=5)
    tripped = rig.now - 1
    assert rig.machine.trip_code == "error-7"
    rig.end_stop()
    assert rig.state is State.FAULT
    assert len(rig.event_texts("fault")) == 1
    assert_safe_stop(rig, tripped, longest_s=0.6)
    assert not any(commands[-1].mode & ES for commands in map(rig.commands, (0, 1)))


@every_profile
def test_an_arm_that_falls_because_of_an_error_is_told_once(profile: str) -> None:
    """The error is the fault; that nothing brakes is its consequence, and no fault of the wires."""
    rig = Rig("laas4", profile=profile).enable().home_by_truth().hold(100)
    rig.mode("position", 0.0, 0.0, 0.0, 0.0)
    rig.until(lambda: rig.cycle.control.is_at_rest)
    rig.step(300)
    rig.mock.boards[0].latch(7)
    rig.until(lambda: rig.state is State.STOPPING, cycles=5)
    tripped = rig.now - 1
    rig.until(lambda: not rig.cycle.units[0].is_powered, cycles=1000)
    let_go = {0: rig.now}
    rig.end_stop()
    assert (rig.machine.trip_code, rig.machine.is_fault_of_board) == ("error-7", True)
    assert len(rig.event_texts("fault")) == 1
    (event,) = rig.events_of("stop")
    assert (event.severity, event.source) == ("warning", "shoulder")
    assert_safe_stop(rig, tripped, let_go=let_go)


# --- frames sweep while boards calibrate ----------------------------------------------------------


class NotingClock(VirtualClock):
    def __init__(self) -> None:
        super().__init__()
        self.woke_ns: list[int] = []

    def sleep_until_ns(self, deadline_ns: int) -> None:
        super().sleep_until_ns(deadline_ns)
        self.woke_ns.append(self.now_ns())


def test_while_boards_calibrate_frames_come_at_every_phase_of_a_millisecond() -> None:
    clock = NotingClock()
    rig = Rig("bench1", clock=clock, calibration_s=0.4)
    states: list[State] = []
    runner = rig.runner(duration_ns=2_000_000_000)
    rig.step(3)
    rig.send(m.Enable())
    clock.woke_ns.clear()
    runner._is_over = lambda: states.append(rig.state) or False  # type: ignore[func-returns-value]
    runner.run()

    woke_ns = np.array(clock.woke_ns)
    phases_us = woke_ns % PERIOD_NS // 1000
    last = len(states) - states[::-1].index(State.CALIBRATING)
    calibrating = sorted(set(phases_us[:last].tolist()))
    assert calibrating[0] == 0 and calibrating[-1] >= 980
    assert max(after - before for before, after in itertools.pairwise(calibrating)) <= 20
    assert (np.abs(np.diff(woke_ns) - PERIOD_NS) <= 20_000).all()
    # Then they go back to the grid, and nothing was lost.
    assert set(phases_us[last + 51 :].tolist()) == {phases_us[-1]}
    assert phases_us[-1] == (runner.started_ns % PERIOD_NS) // 1000
    status = rig.loop.status()
    assert status.skipped == 0
    assert (rig.now - 3) * PERIOD_NS == runner.elapsed_ns == woke_ns[-1] - runner.started_ns


@pytest.mark.parametrize(
    "profile", [n for n, p in PROFILES.items() if p.behaviour.calibration.late_max_s]
)
@pytest.mark.parametrize("phase_us", range(300, 1000, 300))
def test_a_board_timer_of_our_own_period_does_not_keep_calibration_from_starting(
    profile: str, phase_us: int
) -> None:
    """It begins when a frame comes next to the board's own tick, which the sweep sees to."""

    def rig_in_step() -> Rig:
        rig = Rig("bench1", profile=profile, calibration_s=None)
        for board in rig.mock.boards:
            board.timer_ns, board._timer_phase_ns = PERIOD_NS, phase_us * 1000 + 13_000
        rig.step(3)
        rig.send(m.Enable())
        return rig

    rig = rig_in_step()
    runner = rig.runner(duration_ns=300_000_000)
    runner.run()
    assert any(reply.status & STATUS_BITS["M1E"] for reply in rig.replies() if reply is not None)
    stuck = rig_in_step()
    stuck.step(300)
    assert stuck.outputs[0].state is MotorState.IDLE, "a host in step with it never succeeds"


# --- errors of boards before and after ------------------------------------------------------------


@pytest.mark.parametrize("profile", ["arm", "uomodri"])
def test_an_error_without_a_code_while_a_joint_is_held_is_named(profile: str) -> None:
    rig = Rig("laas4", profile=profile, calibration_s=0.3)
    rig.enable().hold(50)
    rig.mock.boards[0].latch(0, 1)
    rig.until(lambda: rig.machine.is_tripped)
    assert (rig.machine.trip_code, rig.machine.is_fault_of_board) == ("not-ready", True)


def test_a_run_that_cannot_begin_for_a_boards_error_ends_with_it() -> None:
    rig = Rig("bench1", profile="uomodri")
    rig.step(3)
    rig.mock.boards[0].latch(2)
    rig.step(3)
    agenda = Agenda(rig.loop)
    agenda.enable()
    for _ in range(4):
        agenda.step()
    assert rig.state is State.FAULT
    assert (rig.machine.trip_code, rig.machine.is_fault_of_board) == ("board-error", True)
