"""However the loop ends, the motors are stopped: told to, broken inside, or killed."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from acceptance import IS_LONG
from loop_rig import ES, Rig, assert_braked, assert_off_once, assert_safe_stop, corrupt
from true_motion import TrueMotion

from daq.loop.agenda import Agenda
from daq.loop.runner import Ending
from daq.loop.schedule import Chore
from daq.recording.states import State
from daq.robot import load_robot
from daq.samples.batches import Header
from daq.stream import messages as m
from firmware_protocol.behaviour import Unpowered
from firmware_protocol.profiles import PROFILES
from hw_mocks.boards.motor_output import MotorState

POSTURE_RAD = (0.2, -1.0, 0.4, 0.6)
COMMAND_TIMEOUT = 2
"""A board's error code, the same in every profile."""


ARM = load_robot("laas4")
LOWER_MAX_S = 8.0 if IS_LONG else 2.0
"""It takes 7 s to lower the arm until it rests: `test_stop_true_motion` looks at that."""


def active_arm() -> Rig:
    safety = msgspec.structs.replace(ARM.safety, lower_max_s=LOWER_MAX_S)
    robot = msgspec.structs.replace(ARM, safety=safety)
    rig = Rig(robot, posture_rad=POSTURE_RAD).enable().home_by_truth().hold(100)
    assert abs(rig.axes[1].iq_a) > 1.0
    return rig


class BrokenError(Exception):
    """Something that must not happen."""


def breaking(function: Callable[..., object], *, after: int = 30) -> Callable[..., object]:
    """The same function, until it has been called so often."""
    left = after

    def broken(*arguments: object, **options: object) -> object:
        nonlocal left
        left -= 1
        if left < 0:
            raise BrokenError("by a test")
        return function(*arguments, **options)

    return broken


def break_control(rig: Rig) -> None:
    rig.mode("velocity", *(0.1,) * len(rig.axes))  # at rest there is nothing to do
    rig.cycle.control.step = breaking(rig.cycle.control.step)


def break_chore(rig: Rig) -> None:
    rig.cycle.schedule[Chore.COMMANDS] = breaking(lambda: None, after=2)


def break_handler_step(rig: Rig) -> None:
    rig.cycle.schedule[Chore.PROMISES] = breaking(rig.loop.handler.step, after=2)


def break_command(rig: Rig) -> None:
    rig.loop.handler._actions[m.Status] = breaking(lambda *_: None, after=2)
    rig.cycle.schedule[Chore.COMMANDS] = lambda: rig.send(m.Status())


def break_sink(rig: Rig) -> None:
    rig.cycle.output._sinks = (breaking(lambda *_: None, after=2),)


def break_guard(number: int) -> Callable[[Rig], None]:
    """It is asked when something is strange: the 30th reply cannot be read."""

    def break_it(rig: Rig) -> None:
        guard = rig.cycle._guarded[number][1]
        guard.check = breaking(guard.check, after=0)
        replies = itertools.count()
        rig.links[number].tamper = lambda frame: corrupt(frame) if next(replies) == 30 else frame

    return break_it


def break_reading(number: int) -> Callable[[Rig], None]:
    def break_it(rig: Rig) -> None:
        unit = rig.cycle.units[number]
        unit.read = breaking(unit.read)

    return break_it


def break_link(number: int) -> Callable[[Rig], None]:
    """Not a device that fails, which is a fault of the board: a bug in the link."""

    def break_it(rig: Rig) -> None:
        link = rig.links[number]
        link.tamper = breaking(lambda frame: frame)

    return break_it


def break_machine(rig: Rig) -> None:
    rig.machine.step = breaking(rig.machine.step, after=0)
    rig.cycle.schedule[Chore.COMMANDS] = lambda: rig.send(m.Stop())


def break_sample(rig: Rig) -> None:
    rig.cycle.output.add = breaking(rig.cycle.output.add)


BREAKS: dict[str, Callable[[Rig], None]] = {
    "control": break_control,
    "chore": break_chore,
    "handler": break_handler_step,
    "command": break_command,
    "sink": break_sink,
    "guard of the first board": break_guard(0),
    "guard of the second board": break_guard(1),
    "reading the first board": break_reading(0),
    "reading the second board": break_reading(1),
    "first link": break_link(0),
    "second link": break_link(1),
    "sample": break_sample,
}


@pytest.mark.acceptance
@pytest.mark.parametrize("break_it", BREAKS.values(), ids=BREAKS)
def test_an_exception_anywhere_is_a_safe_stop_first(break_it: Callable[[Rig], None]) -> None:
    rig = active_arm()
    motion = TrueMotion(rig)
    break_it(rig)
    with pytest.raises(BrokenError):
        rig.runner(duration_ns=1_000_000_000).run()
    assert rig.state is State.FAULT
    assert rig.machine.trip_code == "internal-error"
    assert "BrokenError: by a test" in rig.machine.reason
    assert_safe_stop_by_wire(rig)
    rig.mock.advance_to(rig.clock.now_ns() + 2_000_000_000)
    last = None if IS_LONG else motion.stop_over()
    speeds_rad_s = np.abs(motion.velocity_rad_s(motion.stop_sent(), last))
    assert speeds_rad_s.max() < 0.5, "lowered, also if its board is not seen any more"


def assert_safe_stop_by_wire(rig: Rig) -> int:
    """As `assert_safe_stop`, where the rig did not see the cycles; the last that was led."""
    # The first command without stiffness is the next one.
    led = [
        max(n for n, command in enumerate(rig.commands(board)) if any(command.kp_a_per_rad))
        for board in (0, 1)
    ]
    assert abs(led[0] - led[1]) <= 1
    offs = assert_off_once(rig)
    assert abs(offs[0] - offs[1]) <= 1
    for board, off in enumerate(offs):
        assert 300 <= off - led[board] <= 300 + 1000 * LOWER_MAX_S + 3
        assert len(rig.commands(board)) - off >= 2, "the second shows that the first was taken"
    for joint in range(len(rig.axes)):
        board, _ = rig.place_of(joint)
        assert_braked(rig, joint, led[board], offs[board], off=offs[board])
    return min(led)


def test_an_exception_in_the_stop_itself_does_not_keep_boards_on() -> None:
    """`Machine.step` is what is left then; without it they are switched off at once."""
    rig = active_arm()
    break_machine(rig)
    with pytest.raises(BrokenError):
        rig.runner(duration_ns=1_000_000_000).run()
    assert all(output.state is MotorState.IDLE for output in rig.outputs)


def test_an_exception_while_idle_ends_at_once() -> None:
    rig = Rig()
    break_guard(0)(rig)
    with pytest.raises(BrokenError):
        rig.runner(duration_ns=1_000_000_000).run()
    assert rig.state is State.FAULT
    assert not any(command.mode & ES for command in rig.commands())


def test_keyboard_interrupt_too() -> None:
    rig = active_arm()

    def interrupt() -> None:
        raise KeyboardInterrupt

    rig.cycle.schedule[Chore.HOUSEKEEPING] = interrupt
    with pytest.raises(KeyboardInterrupt):
        rig.runner().run()
    assert not rig.machine.is_powered
    assert not rig.commands()[-1].mode & ES


# --- told to --------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", range(0, 20, 3))
def test_a_signal_begins_the_safe_stop_within_two_cycles(phase: int) -> None:
    rig = active_arm()
    runner = rig.runner()
    rig.step(phase)
    told = rig.now + 5
    calls = 0

    def over() -> bool:
        nonlocal calls
        calls += 1
        if calls == 6:
            runner.end(signal.SIGTERM)
        return False

    runner._is_over = over
    assert runner.run() is Ending.TERMINATED
    assert rig.state is State.IDLE
    assert rig.machine.reason == "SIGTERM"
    assert 0 <= assert_safe_stop_by_wire(rig) - told <= 1
    assert rig.event_texts("state")[-2:] == [
        "active → stopping: SIGTERM",
        "stopping → idle",
    ]


def test_ctrl_c_is_told_from_other_signals() -> None:
    rig = Rig()
    runner = rig.runner()
    runner.end(signal.SIGINT)
    runner.end(signal.SIGTERM)  # impatience changes nothing
    assert runner.run() is Ending.INTERRUPTED


def test_the_time_is_over() -> None:
    rig = Rig()
    assert rig.runner(duration_ns=50_000_000).run() is Ending.TIME_IS_OVER
    assert rig.now == 50 + 2
    rig = Rig().enable().hold()
    before = rig.now
    runner = rig.runner(duration_ns=100_000_000)
    runner.run()
    assert rig.state is State.IDLE
    assert rig.now - before == 100 + 300 + 2
    assert runner.elapsed_ns == (rig.now - before) * 1_000_000


def test_a_fault_ends_a_run_that_shall_end_with_it() -> None:
    rig = active_arm()
    rig.cycle.schedule[Chore.HOUSEKEEPING] = lambda: rig.machine.trip("for a test", code="test")
    assert rig.runner(ends_on_fault=True).run() is Ending.FAULT
    assert rig.state is State.FAULT
    assert rig.machine.reason == "for a test"


def test_an_agenda_runs_to_its_end() -> None:
    rig = Rig()
    agenda = Agenda(rig.loop)
    agenda.enable()
    agenda.hold()
    agenda.home()
    rows = np.zeros((200, 2))
    agenda.play(rows, has_torque=False)
    agenda.disable()
    rig.cycle.schedule[Chore.AGENDA] = agenda.step
    runner = rig.runner(is_over=lambda: agenda.is_over, ends_on_fault=True)
    assert runner.run() is Ending.DONE
    assert agenda.problem == ""
    assert rig.state is State.IDLE
    assert rig.axes[0].joint.name == "joint1"


def test_an_agenda_says_why_it_cannot_go_on() -> None:
    rig = Rig("laas4")
    agenda = Agenda(rig.loop)
    agenda.enable()
    agenda.play(np.full((2, 8), 9.0), has_torque=False)
    rig.cycle.schedule[Chore.AGENDA] = agenda.step
    rig.runner(is_over=lambda: agenda.is_over).run()
    assert "joint1: 9 rad" in agenda.problem
    assert rig.state is State.IDLE


# --- killed ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
def test_a_killed_host(profile: str) -> None:
    """The board's own time-out, 10 ms and what it may be late, whatever was going on."""
    rig = Rig("bench1", profile=profile).enable()
    rig.mode("velocity", 3.0)
    rig.step(500)
    (output,) = rig.outputs
    last_ns = rig.clock.now_ns()
    rig.mock.advance_to(last_ns + 9_750_000)
    assert output.state is MotorState.RUNNING
    slack_s = PROFILES[profile].behaviour.watchdog_slack_s
    rig.mock.advance_to(last_ns + 10_500_000 + round(slack_s * 1e9))
    assert output.state is MotorState.ERROR
    speed = abs(rig.mock.plant.motor_velocity_rad_s[0])
    if PROFILES[profile].behaviour.unpowered is Unpowered.BRAKE:
        assert output.iq_a * rig.mock.plant.motor_velocity_rad_s[0] < 0.0, "it brakes"
    else:
        assert output.iq_a == 0.0
    rig.mock.advance_to(last_ns + 500_000_000)
    assert abs(rig.mock.plant.motor_velocity_rad_s[0]) < 0.5 * speed


def test_a_hung_host_comes_back_to_a_fault() -> None:
    """After 30 ms without the loop the boards have stopped by themselves, and say so."""
    rig = active_arm()
    rig.clock.advance_ns(30_000_000)
    rig.step(3)
    assert rig.state is State.STOPPING
    assert rig.machine.trip_code == f"error-{COMMAND_TIMEOUT}"
    tripped = rig.now - 3
    rig.end_stop()
    assert rig.state is State.FAULT
    assert_safe_stop(rig, tripped)
    assert [event.source for event in rig.events_of("fault")] == ["shoulder", "elbow"]
    assert rig.machine.reason == rig.event_texts("fault")[0]


def test_the_last_batch_is_handed_on() -> None:
    rig = Rig()
    rig.runner(duration_ns=47_000_000).run()
    headers: list[Header] = [header for header, _ in rig.batches]
    assert [header.count for header in headers] == [20, 20, 9]
