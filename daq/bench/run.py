"""Drives a bench test inside the loop, 50 steps a second.

Each part of the test is a generator that yields until the next look. Everything goes through the
same handler as commands from the socket, so that every limit holds, and nobody else commands
meanwhile; what is measured is decided afterwards, from the recording, where the events written here
say what was driven when.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Generator

import msgspec

from daq.bench.diagnosis import find_encoder_gap, find_obstacle
from daq.bench.plan import SWING_RAD, SWINGS, BenchPlan, PlannedPlateau, run_up_rad, swing_s
from daq.bench.plateau_queue import PlateauQueue
from daq.bench.room import back_to_rad, has_room, way_ahead_rad, way_rad
from daq.bench.settling import Diagnosis, Look, SettlingDetector
from daq.loop.own_commands import OwnCommands
from daq.loop.safety.standstill import ENCODER_FROZEN
from daq.loop.setup import Loop
from daq.recording import bench_events
from daq.recording.bench_events import PlateauData
from daq.recording.states import Mode, State
from daq.stream import messages as m
from daq.stream.errors import RefusedError

Part = Generator[None, None, None]

_REST_S = 0.25
_RAMP_START, _RAMP_PER_S, _RAMP_MAX = 0.5, 0.45, 3.0
"""Of the current that friction takes: where a ramp starts, how fast it rises, where it ends."""
_MOVED_COUNTS = 12.0
_STEP_MAX_S, _COAST_MAX_S = 0.5, 1.5
_STEP_SPEED, _COAST_SPEED = 0.6, 0.08
"""Of the joint's speed limit: a step ends at the one, coasting at the other."""
_BACK_SPEED, _BACK_SPEED_MIN, _BACK_MIN_S = 0.8, 0.02, 0.6
"""Driving back: the speed while no plateau has settled at a higher one, of the limit, the slowest
one that is tried, and how long it takes at least."""
_MOVED_RAD = 0.05
_LAGGING, _STUCK_LAG = 0.4, 0.3
"""Of the lag that stops the robot: a plateau is given up in time to come to rest before."""
_MEMORY_S = 0.3
_SPEED_TOLERANCE = 0.1


class BenchRun:
    """A bench test on a loop, as an agenda: `step` now and then until `is_over`.

    Attributes:
        problem: Why it ended early, in plain words; empty while nothing is wrong.
        problem_code: The same in a word: of the trip, of the refusal, or of the diagnosis.
        is_over: Whether everything is done, or cannot be.
        was_stopped: Whether it ended early because somebody wanted it so.
        done: Plateaus, ramps and steps that are over.
    """

    def __init__(self, loop: Loop, plan: BenchPlan, *, following_error_max_rad: float) -> None:
        self._loop = loop
        self._command = OwnCommands(loop, f"the bench test of {plan.header.joint}")
        self._plan = plan
        self._lag_max_rad = following_error_max_rad
        names = [track.axis.joint.name for track in loop.cycle.control.tracks]
        self._track = loop.cycle.control.tracks[names.index(plan.header.joint)]
        self._axis = self._track.axis
        self._motor_per_joint = self._axis.motor_per_joint
        self._recent: deque[Look] = deque()
        self._target_rad_s = 0.0
        self._friction_a: list[float] = []
        self._queue = PlateauQueue(plan, self._axis.joint)
        self._back_rad_s = _BACK_SPEED * self._axis.speed_max_rad_s
        self._chance = random.Random(plan.header.seed)
        self._part = self._everything()
        self._is_ending = False
        self.is_over = False
        self.was_stopped = False
        self.problem = ""
        self.problem_code = ""
        self.done = 0

    @property
    def unfinished(self) -> str:
        """What has not come to its end; empty if all has."""
        return "" if self.is_over and not self.problem else "the bench test"

    @property
    def total(self) -> int:
        """How much there is to do."""
        return self._plan.parts

    def step(self) -> None:
        """Look at the joint and go on with the test."""
        if self.is_over:
            self._command.release()
        else:
            self._go_on()

    def _go_on(self) -> None:
        machine = self._loop.cycle.machine
        if machine.is_tripped:
            self._give_up(*self._explain())
            return
        if machine.state is State.STOPPING and not self._is_ending:
            self.is_over = self.was_stopped = True
            self.problem = f"the test was stopped before its end: {machine.reason}"
            self.problem_code = "stopped"
            return
        if lost := self._command.why_lost():
            self._give_up(lost.code, f"the test was ended by somebody else: {lost}")
            return
        self._look()
        try:
            next(self._part)
        except StopIteration:
            self.is_over = True
        except RefusedError as error:
            self._give_up(error.reason or error.code, str(error))

    # --- the whole test ---------------------------------------------------------------------------

    def _everything(self) -> Part:
        cycle, header = self._loop.cycle, self._plan.header
        while any(unit.replies is None for unit in cycle.units):
            yield
        self._note(bench_events.PLAN, msgspec.json.encode(header).decode(), severity="debug")
        shortest_s = sum(planned.dwell_s for planned in self._plan.plateaus)
        self._loop.boards.announce("the bench test", shortest_s)
        self._command(m.Enable())
        yield from self._wait_for(State.READY)
        if header.kind == "mounted":
            yield from self._prepare_mounted()
        if header.load_arm is not None:
            yield from self._swing()
        for number in range(1, len(self._plan.plateaus) + 1):
            planned = self._queue.take(self._axis.position_rad, self._axis.reach_rad)
            yield from self._drive_plateau(number, planned)
            self.done += 1
        if self._plan.breakaways or self._plan.steps:
            yield from self._stop()
        for number in range(self._plan.breakaways):
            yield from self._ramp(number + 1, 1.0 if number % 2 == 0 else -1.0)
            self.done += 1
        for number in range(self._plan.steps):
            yield from self._step_current(number + 1, 1.0 if number % 2 == 0 else -1.0)
            self.done += 1
        self._is_ending = True
        self._command(m.Disable())
        yield from self._wait_for(State.IDLE)

    def _wait_for(self, state: State) -> Part:
        while self._loop.cycle.machine.state is not state:
            yield

    def _until_at_rest(self) -> Part:
        while not self._loop.cycle.control.is_at_rest:
            yield

    def _prepare_mounted(self) -> Part:
        control = self._loop.cycle.control
        self._command(m.SetMode(mode="hold"))
        yield from self._until_at_rest()
        self._command(m.Home())
        while control.homing is not None:
            yield
        if not all(track.axis.is_homed for track in control.tracks):
            raise RefusedError("not-homed", "a joint could not be homed: see the events")

    # --- plateaus ---------------------------------------------------------------------------------

    def _drive_plateau(self, number: int, planned: PlannedPlateau) -> Part:
        plan, window_rad = self._plan, self._plan.header.window_rad
        speed_rad_s, dwell_s = planned.joint_velocity_rad_s, planned.dwell_s
        if window_rad is not None:
            near, far = window_rad if speed_rad_s > 0 else window_rad[::-1]
            start_rad = near - math.copysign(run_up_rad(speed_rad_s), speed_rad_s)
            self._set_mode("position", start_rad)
            yield from self._until_at_rest()
        else:
            reach_rad = self._axis.reach_rad
            yield from self._make_room(speed_rad_s, self._queue.duration_s(planned, reach_rad))
        self._set_mode("velocity", speed_rad_s)
        count = plan.header.plateaus
        self._note(bench_events.PLATEAU, f"plateau {number} of {count}: {speed_rad_s:+.4g} rad/s")
        self._note_data(PlateauData(joint_velocity_rad_s=speed_rad_s))
        began_s = at_speed_s = self._now_s
        self._target_rad_s = speed_rad_s * self._motor_per_joint
        detector = SettlingDetector(
            kp_a_per_rad=plan.gains.kp_a_per_rad,
            target_rad_s=self._target_rad_s,
            limit_a=self._axis.isat_a,
            advice=plan.advice,
            speed_tolerance=None if window_rad is None else _SPEED_TOLERANCE,
        )
        yield
        while not detector.add(self._recent[-1], is_ramping=not self._is_at_speed(speed_rad_s)):
            if not self._is_at_speed(speed_rad_s):
                at_speed_s = self._now_s  # how long a ramp takes is the robot file's choice
            is_free = window_rad is None
            is_too_far = (
                not self._has_room(speed_rad_s, dwell_s) if is_free else self._is_past(near)
            )
            is_late = self._now_s - at_speed_s > plan.settle_max_s
            self._refuse_obstacles()
            if is_late or is_too_far or self._is_lagging():
                yield from self._give_plateau_up(number, speed_rad_s, detector.problem())
                return
            yield
        if window_rad is not None:
            while not self._is_past(near):
                yield
        self._back_rad_s = max(self._back_rad_s, abs(speed_rad_s))
        self._queue.note_settled(self._now_s - began_s)
        text = f"plateau {number} settled after {self._now_s - began_s:.2f} s"
        self._note(bench_events.SETTLED, text, severity="debug")
        if window_rad is not None:
            while not self._is_past(far):
                yield
        else:
            yield from self._measure(dwell_s)
        self._note(bench_events.PLATEAU_END, f"plateau {number} is over", severity="debug")
        if window_rad is not None:
            yield from self._stop()

    def _give_plateau_up(self, number: int, speed_rad_s: float, why: Diagnosis) -> Part:
        self._note_data(
            PlateauData(joint_velocity_rad_s=speed_rad_s, cause=why.code, remark=why.text)
        )
        text = f"plateau {number} at {speed_rad_s:+.4g} rad/s: {why.text}"
        self._note(bench_events.UNSETTLED, text, severity="warning")
        yield from self._stop()
        if self._plan.header.window_rad is None:
            yield from self._coast()

    def _measure(self, dwell_s: float) -> Part:
        """Wait until both the time and the turns are enough, with a little to spare."""
        began_s, began_rad = self._now_s, self._axis.position_rad
        turn_rad = math.tau * self._plan.turns / abs(self._motor_per_joint)
        while True:
            yield
            travelled_rad = abs(self._axis.position_rad - began_rad)
            if self._now_s - began_s >= dwell_s and travelled_rad >= 1.01 * turn_rad:
                break
            self._refuse_obstacles()
            if self._is_lagging() or self._now_s - began_s > 3.0 * dwell_s + 1.0:
                break  # the analysis will see
        # Not from the lag: the reference is cycles ahead of what was measured, which adds Kp·ω·t.
        self._friction_a.append(abs(sum(look.iq_a for look in self._recent)) / len(self._recent))

    # --- room on the wire -------------------------------------------------------------------------

    def _has_room(self, speed_rad_s: float, duration_s: float) -> bool:
        axis = self._axis
        return has_room(axis.joint, speed_rad_s, duration_s, axis.position_rad, axis.reach_rad)

    def _make_room(self, speed_rad_s: float, duration_s: float) -> Part:
        """Drive back first, if a speed could not be kept for so long from here."""
        axis, joint = self._axis, self._axis.joint
        needed_rad = way_ahead_rad(joint, speed_rad_s, duration_s)
        while not self._has_room(speed_rad_s, duration_s):
            back_rad_s = self._back_rad_s
            if back_rad_s < _BACK_SPEED_MIN * axis.speed_max_rad_s:
                text = f"joint {joint.name} cannot be driven back from {axis.position_rad:+.4g} "
                text += f"rad to have {abs(needed_rad):.4g} rad in front of it before its motor's "
                raise RefusedError("failed", f"{text}position wraps on the wire", reason="wrap")
            self._back_rad_s *= 0.5  # if it does not get there
            yield from self._drive_to(back_to_rad(needed_rad, joint, axis.reach_rad), back_rad_s)
            if self._has_room(speed_rad_s, duration_s):
                self._back_rad_s = back_rad_s

    def _drive_to(self, target_rad: float, fastest_rad_s: float) -> Part:
        """Drive to about an angle; give up when it does not follow."""
        joint, way = self._axis.joint, target_rad - self._axis.position_rad
        speed_rad_s = math.copysign(min(fastest_rad_s, abs(way) / _BACK_MIN_S), way)
        until_s = self._now_s + 2.0 * abs(way / speed_rad_s) + 1.0
        self._set_mode("velocity", speed_rad_s)
        self._target_rad_s = speed_rad_s * self._motor_per_joint
        while True:
            yield
            left_rad = (target_rad - self._axis.position_rad) * math.copysign(1.0, way)
            if left_rad < way_rad(joint, speed_rad_s, 0.0) or self._now_s > until_s:
                yield from self._stop()
                return
            if self._is_lagging():
                yield from self._stop()
                yield from self._coast()
                return

    def _is_at_speed(self, speed_rad_s: float) -> bool:
        """Whether the reference's ramp is over."""
        return abs(self._track.reference[1] - speed_rad_s) < 1e-9

    def _is_lagging(self, share: float = _LAGGING) -> bool:
        """Whether it is about to be stopped for not following, or well on the way there."""
        before, now = list(self._recent)[-2:] if len(self._recent) > 1 else [self._recent[-1]] * 2
        coming_rad = abs(now.lag_rad + (now.lag_rad - before.lag_rad))
        return coming_rad > share * self._lag_max_rad * abs(self._motor_per_joint)

    def _is_past(self, angle_rad: float) -> bool:
        forwards = self._target_rad_s * self._motor_per_joint > 0.0
        position_rad = self._axis.position_rad
        return position_rad > angle_rad if forwards else position_rad < angle_rad

    def _coast(self) -> Part:
        """Let go of a reference that runs ahead; the next one begins where the joint is."""
        self._set_mode("current", 0.0)
        began_s = self._now_s
        while self._now_s < began_s + _COAST_MAX_S:
            yield
            if abs(self._axis.velocity_rad_s) < _COAST_SPEED * self._axis.speed_max_rad_s:
                return

    def _stop(self) -> Part:
        self._target_rad_s = 0.0
        self._set_mode("hold")
        yield from self._until_at_rest()

    # --- breakaway and inertia --------------------------------------------------------------------

    @property
    def _friction_iq_a(self) -> float:
        """Current that friction takes, as the sweep has shown."""
        if not self._friction_a:
            return self._plan.expected_iq_a
        middle = sorted(self._friction_a)[len(self._friction_a) // 2]
        return min(max(middle, 0.01), 0.5 * self._axis.current_max_a)

    def _ramp(self, number: int, sign: float) -> Part:
        """Raise the current from rest until the joint moves, each time from another angle."""
        turn_rad = math.tau / abs(self._motor_per_joint)
        low_rad, high_rad = self._axis.reach_rad
        here_rad = self._axis.position_rad
        # Towards the middle of the wire's range, of which there is enough then.
        turn_rad *= math.copysign(1.0, 0.5 * (low_rad + high_rad) - here_rad)
        somewhere_rad = here_rad + self._chance.uniform(0.2, 1.2) * turn_rad
        self._set_mode("position", somewhere_rad)
        yield from self._until_at_rest()
        self._set_mode("current", 0.0)
        yield from self._wait(_REST_S)
        friction_a = self._friction_iq_a
        began_s, rest_rad = self._now_s, self._axis.position_rad
        count_rad = math.tau / self._axis.joint.drive.encoder_counts_per_turn
        moved_rad = _MOVED_COUNTS * count_rad / abs(self._motor_per_joint)
        self._note(bench_events.RAMP, f"current ramp {number} of {self._plan.breakaways}")
        while abs(self._axis.position_rad - rest_rad) < moved_rad:
            level = _RAMP_START + _RAMP_PER_S * (self._now_s - began_s)
            current_a = level * friction_a
            if level > _RAMP_MAX or current_a > 0.9 * self._axis.current_max_a:
                break
            self._set_mode("current", sign * current_a)
            yield
        self._note(bench_events.RAMP_END, f"current ramp {number} is over", severity="debug")
        yield from self._stop()

    def _step_current(self, number: int, sign: float) -> Part:
        """Accelerate at a constant current, then coast; twice the information of either."""
        fastest_rad_s = _STEP_SPEED * self._axis.speed_max_rad_s
        forwards_rad_s = sign * math.copysign(fastest_rad_s, self._motor_per_joint)
        yield from self._make_room(1.2 * forwards_rad_s, _STEP_MAX_S + _COAST_MAX_S)
        self._set_mode("current", 0.0)
        yield from self._wait(_REST_S)
        current_a = max(self._plan.step_iq_a, 1.8 * self._friction_iq_a)
        current_a = min(current_a, 0.8 * self._axis.current_max_a)
        count = self._plan.steps
        self._note(
            bench_events.STEP, f"current step {number} of {count}: {sign * current_a:+.3g} A"
        )
        began_s = self._now_s
        self._set_mode("current", sign * current_a)
        while abs(self._axis.velocity_rad_s) < fastest_rad_s:
            if self._now_s - began_s > _STEP_MAX_S:
                break
            yield
        self._set_mode("current", 0.0)
        began_s = self._now_s
        while abs(self._axis.velocity_rad_s) > _COAST_SPEED * self._axis.speed_max_rad_s:
            if self._now_s - began_s > _COAST_MAX_S:
                break
            yield
        self._note(bench_events.STEP_END, f"current step {number} is over", severity="debug")
        yield from self._stop()

    # --- load arm ---------------------------------------------------------------------------------

    def _swing(self) -> Part:
        """Lift and lower the weight slowly to both sides, and come back to where it hangs."""
        start_rad = self._axis.position_rad
        self._command(m.SetMode(mode="hold", joints=(self._axis.joint.name,)))
        sides = [SWING_RAD if number % 2 == 0 else -SWING_RAD for number in range(2 * SWINGS)]
        position_rad = start_rad
        for number, side in enumerate([*sides, 0.0], 1):
            target_rad = start_rad + side
            if side:
                self._note(bench_events.SWING, f"swing {number} of {len(sides)}")
            duration_s = swing_s(target_rad - position_rad)
            self._set_mode("position", target_rad, duration_s=duration_s)
            yield from self._until_at_rest()
            if side:
                self._note(bench_events.SWING_END, f"swing {number} is over", severity="debug")
                self.done += 1
            position_rad = target_rad

    # --- means ------------------------------------------------------------------------------------

    @property
    def _now_s(self) -> float:
        return self._loop.cycle.events.t_ns * 1e-9

    def _look(self) -> None:
        axis, per_joint = self._axis, self._motor_per_joint
        # Without gains there is no reference: a board may count from far away.
        led_rad = self._track.reference[0] if self._track.is_led else axis.position_rad
        look = Look(
            self._now_s,
            axis.position_rad * per_joint,
            (led_rad - axis.position_rad) * per_joint,
            axis.velocity_rad_s * per_joint,
            axis.iq_a,
        )
        self._recent.append(look)
        while look.t_s - self._recent[0].t_s > _MEMORY_S:
            self._recent.popleft()

    def _wait(self, duration_s: float) -> Part:
        until_s = self._now_s + duration_s
        while self._now_s < until_s:
            yield

    def _set_mode(self, mode: str, *target: float, duration_s: float = 0.0) -> None:
        joints = (self._axis.joint.name,)
        self._command(m.SetMode(mode=mode, joints=joints, target=target, duration_s=duration_s))

    def _note(self, kind: str, text: str, *, severity: str = "info") -> None:
        self._loop.cycle.events.add(kind, text, severity=severity, source=self._axis.joint.name)

    def _note_data(self, data: PlateauData) -> None:
        self._note(bench_events.PLATEAU_DATA, msgspec.json.encode(data).decode(), severity="debug")

    # --- when it goes wrong -----------------------------------------------------------------------

    def _give_up(self, code: str, problem: str) -> None:
        self.problem_code = code
        self.problem = problem or "the bench test could not go on"
        is_known = problem == self._loop.cycle.machine.reason
        self._note(bench_events.PROBLEM, self.problem, severity="debug" if is_known else "error")
        self.is_over = True

    def _refuse_obstacles(self) -> None:
        """End the test at once, by a refusal, when the joint has run into something."""
        if self._track.mode is not Mode.VELOCITY:
            text = f"joint {self._axis.joint.name} was stopped before its range ends"
            raise RefusedError("failed", text, reason="wrap")
        if obstacle := self._find_obstacle():
            raise RefusedError("failed", obstacle.text, reason=obstacle.code)

    def _explain(self) -> tuple[str, str]:
        """Return what most likely happened, as a code and for the person at the bench."""
        reason, code = self._loop.cycle.machine.reason, self._loop.cycle.machine.trip_code
        if self._loop.cycle.machine.is_fault_of_board or code == ENCODER_FROZEN:
            return code, reason
        if self._loop.cycle.machine.is_powered:
            self._look()  # afterwards positions begin anew
        fastest_rad_s = self._axis.speed_max_rad_s * abs(self._motor_per_joint)
        if cause := find_encoder_gap(self._recent, fastest_rad_s) or self._find_obstacle():
            return cause.code, f"{cause.text} ({reason})"
        is_fast = abs(self._axis.velocity_rad_s) > 0.99 * self._axis.speed_max_rad_s
        if self._target_rad_s and (is_fast or self._is_lagging()):
            return code, f"{reason} (if it overshoots or oscillates, {self._plan.advice})"
        return code, reason

    def _find_obstacle(self) -> Diagnosis | None:
        if not self._target_rad_s or not self._is_lagging(_STUCK_LAG):
            return None  # or only just setting off
        return find_obstacle(
            self._recent,
            self._axis.joint.name,
            target_rad_s=self._target_rad_s,
            friction_a=self._friction_iq_a,
            limit_a=self._axis.isat_a,
            joint_position_rad=self._axis.position_rad,
            has_moved=bool(self.done) or abs(self._axis.position_rad) > _MOVED_RAD,
        )
