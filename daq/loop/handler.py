"""Carries out commands: each one is checked in full before anything changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from daq.boards.wire_limits import sum_problems
from daq.loop.cycle import Cycle
from daq.loop.lease_keeper import LeaseKeeper
from daq.loop.process.watches import RecorderWatch
from daq.loop.safety.board_watch import BoardWatch
from daq.loop.safety.rest_watch import STANDING_RAD_S, RestWatch
from daq.loop.tracks.homing import HomingRun
from daq.loop.tracks.planner import jog_problem
from daq.loop.tracks.track import Track
from daq.loop.tracks.upload import Upload
from daq.loop.wording import beyond
from daq.motion.errors import MotionError, MotionLimitError
from daq.motion.homing import HINT_MAX
from daq.motion.planning import check_reach
from daq.recording.states import DRIVEN_MODES, SETTABLE_MODES, Mode, State
from daq.robot import DrivenRobot, Gains
from daq.stream import messages as m
from daq.stream.errors import RefusedError

_TARGETLESS = (Mode.OFF, Mode.HOLD)
_AT_REST = 0.1
"""Of the speed limit: a joint that is slower than this may be homed."""
_NOT_ANNOUNCED = "no trajectory was announced: send play-begin first"


class Handler:
    """What the command socket calls; without `is_armed` it enables no motor."""

    def __init__(
        self,
        robot: DrivenRobot,
        cycle: Cycle,
        recorder: RecorderWatch,
        status: Callable[[], m.LoopStatus],
        boards: BoardWatch,
        *,
        rest: RestWatch,
        lease: LeaseKeeper,
        period_s: float,
        is_armed: bool,
    ) -> None:
        self._robot = robot
        self._is_armed = is_armed
        self._cycle = cycle
        self._machine = cycle.machine
        self._control = cycle.control
        self._output = cycle.output
        self._recorder = recorder
        self._boards = boards
        self._rest = rest
        self._is_blindness_said = False
        self._lease = lease
        self._period_s = period_s
        self._upload: Upload | None = None
        self._is_disabling = False
        self._numbers = {joint.name: number for number, joint in enumerate(robot.joints)}
        self._actions: dict[type, Callable[[Any, bytes], object]] = {
            m.Status: lambda _command, _payload: status(),
            m.Enable: self._enable,
            m.Disable: self._disable,
            m.Stop: self._stop,
            m.Reset: self._reset,
            m.TakeLease: lambda command, _payload: lease.take(command),
            m.RenewLease: lambda command, _payload: lease.renew(command),
            m.ReleaseLease: lambda command, _payload: lease.release(command),
            m.SetMode: self._set_mode,
            m.SetGains: self._set_gains,
            m.Home: self._home,
            m.PlayBegin: self._play_begin,
            m.PlayRows: self._play_rows,
            m.PlayStart: self._play_start,
            m.PlayStop: self._play_stop,
            m.RecordStart: self._record_start,
            m.RecordStop: self._record_stop,
            m.RecordMark: self._record_mark,
            m.Report: self._report,
        }

    def __call__(self, command: m.AnyCommand, payload: bytes = b"") -> object:
        """Carry out a command and return its result.

        Raises:
            RefusedError: It was not carried out; nothing has changed.
        """
        self._lease.admit(command)
        try:
            result = self._actions[type(command)](command, payload)
        except MotionError as error:
            raise RefusedError("out-of-limit", str(error), reason=error.code) from error
        self._lease.note(command)
        return result

    def step(self) -> None:
        """End what a command has begun, once its time has come; called now and then."""
        self._lease.step()
        if self._is_disabling and self._control.is_at_rest:
            self._is_disabling = False
            self._machine.stop("disabled")
        if self._machine.state not in (State.READY, State.ACTIVE):
            self._is_disabling = False

    # --- power ------------------------------------------------------------------------------------

    def _enable(self, _command: m.Enable, _payload: bytes) -> object:
        self._require("enable", State.IDLE)
        if not self._is_armed:
            text = "the loop was started without --arm: it moves no motor"
            raise RefusedError("not-now", text, reason="not-armed")
        for unit in self._cycle.units:
            if not unit.is_answering:
                text = f"{unit.title} does not answer: see `armature doctor`"
                raise RefusedError("not-now", text, reason="no-answer")
            if unit.fault is not None:
                text = f"board {unit.port.name} reports {unit.fault.meaning}. {unit.fault.remedy}"
                raise RefusedError("not-now", text, reason="board-error")
            if unit.is_enabled:
                text = f"board {unit.port.name} has not switched off yet: try again"
                raise RefusedError("not-now", text, reason="still-on")
        self._require_rest()
        self._boards.announce("enabling")
        self._control.switch_off()
        self._machine.enable()
        return {"state": self._machine.state.name.lower()}

    def _require_rest(self) -> None:
        """Refuse to calibrate motors of an arm that swings, as far as that can be seen."""
        moving = [f"{name} at {speed_rad_s:.2g} rad/s" for name, speed_rad_s in self._rest.moving]
        if moving:
            text = f"joints are moving ({', '.join(moving)}, limit {STANDING_RAD_S:g} rad/s): "
            raise RefusedError("not-now", f"{text}wait until the arm hangs still", reason="moving")
        blind = [
            unit.port.name
            for unit in self._cycle.units
            if not unit.board.profile.behaviour.calibration.is_position_live_before
        ]
        if blind and not self._is_blindness_said:
            self._is_blindness_said = True
            text = f"enabling: boards {', '.join(blind)} report no position before they are "
            text += "calibrated; see for yourself that the arm stands still"
            self._cycle.events.add("enable", text)

    def _disable(self, _command: m.Disable, _payload: bytes) -> object:
        if self._is_disabling:
            pass  # to begin anew each time would keep the robot moving
        elif self._machine.state is State.ACTIVE:
            try:
                self._control.come_to_rest()
                self._is_disabling = True
            except MotionLimitError as error:
                # A joint without gains has coasted to where it cannot be held.
                self._machine.stop(f"disabled at once: {error}")
        else:
            self._machine.stop("disabled")
        return {"state": self._machine.state.name.lower()}

    def _stop(self, _command: m.Stop, _payload: bytes) -> object:
        self._machine.stop("stop was commanded", may_hold=True)
        return {"state": self._machine.state.name.lower()}

    def _reset(self, _command: m.Reset, _payload: bytes) -> object:
        if not self._machine.is_holding:
            self._require("reset", State.FAULT)
        self._machine.reset()
        return {"state": self._machine.state.name.lower()}

    # --- motion -----------------------------------------------------------------------------------

    def _set_mode(self, command: m.SetMode, _payload: bytes) -> object:
        mode = SETTABLE_MODES.get(command.mode)
        if mode is None:
            names = ", ".join(SETTABLE_MODES)
            text = f"{command.mode!r} is not a mode; there are {names}"
            raise RefusedError("unknown", text, reason="unknown-mode")
        numbers = self._joints(command.joints)
        if bool(command.target) is (mode in _TARGETLESS):
            wanted = "takes no target" if mode in _TARGETLESS else "needs a target for each joint"
            reason = "needless-target" if command.target else "no-target"
            raise RefusedError("malformed", f"mode {command.mode} {wanted}", reason=reason)
        target = self._per_joint("target", command.target, numbers)
        self._require(f"mode {command.mode}", State.READY, State.ACTIVE)
        is_of_all = len(numbers) == len(self._robot.joints)
        if self._is_led and not (mode in _TARGETLESS and is_of_all):
            text = f"{self._leader} is going on; `mode hold` of all joints ends it"
            raise RefusedError("not-now", text, reason="busy")
        for number, value in zip(numbers, target, strict=False):
            self._check_target(mode, number, value)
        if mode in (Mode.HOLD, Mode.POSITION):
            self._require_gains(numbers)
        if self._is_led:
            self._control.come_to_rest()
        target = self._control.set_mode(mode, numbers, target, command.duration_s)
        self._machine.activate(self._control.is_active)
        return {
            "state": self._machine.state.name.lower(),
            "mode": command.mode,
            "target": list(target),
        }

    def _check_target(self, mode: Mode, number: int, value: float) -> None:
        joint, axis = self._robot.joints[number], self._control.tracks[number].axis
        problem = "" if axis.is_homed else jog_problem(self._control.tracks[number], mode, value)
        if problem:
            text = f"joint {joint.name}: its zero is not known since the motors were enabled: "
            raise RefusedError("not-homed", f"{text}{problem}; `armature send home` finds it")
        if mode is Mode.CURRENT:
            _check(joint.name, "current", value, axis.current_max_a, "A", reason="current-limit")
        elif mode is Mode.TORQUE:
            torque_max_nm = joint.limits.torque_max_nm
            _check(joint.name, "torque", value, torque_max_nm, "N·m", reason="torque-limit")
            current_a, what = value * axis.amperes_per_nm, "current for that torque"
            _check(joint.name, what, current_a, axis.current_max_a, "A", reason="current-limit")

    def _set_gains(self, command: m.SetGains, _payload: bytes) -> object:
        self._refuse_in_a_stop("gains")
        numbers = self._joints(command.joints)
        names = ("kp_a_per_rad", "kd_a_s_per_rad", "ki_a_per_rad_s")
        given = {name: self._per_joint(name, getattr(command, name), numbers) for name in names}
        if not any(given.values()):
            text = f"no gains given; there are {', '.join(names)}"
            raise RefusedError("malformed", text, reason="no-gains")
        changes: list[tuple[int, Gains]] = []
        for place, number in enumerate(numbers):
            track = self._control.tracks[number]
            before = track.position_gains
            chosen = {
                name: given[name][place] if given[name] else getattr(before, name) for name in names
            }
            for name, highest in track.axis.gains_max.items():
                value = chosen[name]
                if given[name] and not 0.0 <= value <= highest:
                    joint = self._robot.joints[number].name
                    text = f"joint {joint}: {name} = {value:g}, the board takes 0 to {highest:g}"
                    raise RefusedError("out-of-limit", text, reason="gain-limit")
            if not any(chosen.values()) and track.mode not in DRIVEN_MODES:
                text = f"joint {track.axis.joint.name}: without any gain it falls; `mode off` is "
                text += "the way to let go of it"
                raise RefusedError("out-of-limit", text, reason="all-gains-zero")
            gains = Gains(**chosen)
            self._check_gains(track, gains)
            changes.append((number, gains))
        for number, gains in changes:
            track = self._control.tracks[number]
            track.set_position_gains(gains)
            self._control.note_ki(track)
        self._control.note_change()
        return {"joints": [self._robot.joints[number].name for number in numbers]}

    def _check_gains(self, track: Track, gains: Gains) -> None:
        axis, joint = track.axis, track.axis.joint
        for problem in sum_problems(gains, self._robot.safety, joint, axis.behaviour):
            raise RefusedError("out-of-limit", f"joint {joint.name}: {problem}", reason="gain-sum")
        if (gains.kp_a_per_rad or gains.ki_a_per_rad_s) and track.follows:
            check_reach(joint.name, axis.position_rad, axis.fence_rad)
        problem = track.unstable(gains)
        if problem:
            text = f"joint {joint.name}: {problem}"
            raise RefusedError("out-of-limit", text, reason="unstable-gains")
        problem = track.gain_problem(gains)
        if problem:
            raise RefusedError("not-now", f"joint {joint.name}: {problem}", reason="integral")

    def _home(self, command: m.Home, _payload: bytes) -> object:
        everyone = range(len(self._robot.joints))
        posture = self._per_joint("posture_rad", command.posture_rad, everyone)
        self._require("home", State.READY, State.ACTIVE)
        if self._is_led:
            raise RefusedError("not-now", f"{self._leader} is going on", reason="busy")
        self._require_gains(everyone)
        tracks = self._control.tracks
        if not self._control.is_at_rest or any(map(_is_turning, tracks)):
            text = "joints are moving: bring them to rest with `mode hold`"
            raise RefusedError("not-now", text, reason="moving")
        hints = [
            self._check_hint(track, hint)
            for track, hint in zip(tracks, posture or map(_posture, tracks), strict=True)
        ]
        run = HomingRun(
            self._cycle.units,
            [track.axis for track in tracks],
            [track.present()[0] for track in tracks],
            hints,
            period_s=self._period_s,
        )
        self._control.home(run)
        self._machine.activate(True)
        return {"state": "homing", "posture_rad": list(hints)}

    def _check_hint(self, track: Track, hint_rad: float) -> float:
        axis, joint = track.axis, track.axis.joint
        low, high = joint.limits.position_min_rad, joint.limits.position_max_rad
        if not low <= hint_rad <= high:
            limit = low if hint_rad < low else high
            text = f"joint {joint.name}: posture {beyond(hint_rad, limit, 'rad')}"
            raise RefusedError("out-of-limit", text, reason="position-limit")
        allowed_rad = HINT_MAX * math.tau / joint.drive.gear_reduction
        if axis.is_homed and abs(hint_rad - axis.position_rad) > allowed_rad:
            text = (
                f"joint {joint.name}: posture {hint_rad:.4g} rad, but it is homed and stands at "
                f"{axis.position_rad:.4g} rad; disable and enable it if that is wrong"
            )
            raise RefusedError("out-of-limit", text, reason="homed-elsewhere")
        return hint_rad

    def _play_begin(self, command: m.PlayBegin, _payload: bytes) -> object:
        self._refuse_in_a_stop("play")
        if self._control.is_playing:
            text = "a trajectory is being played: end it with `play-stop`"
            raise RefusedError("not-now", text, reason="busy")
        self._upload = Upload(
            self._robot,
            rows=command.rows,
            has_torque=command.has_torque,
            period_s=self._period_s,
        )
        return {"rows": 0}

    def _play_rows(self, command: m.PlayRows, payload: bytes) -> object:
        if self._upload is None:
            raise RefusedError("not-now", _NOT_ANNOUNCED, reason="not-announced")
        return {"rows": self._upload.add(command.first, payload)}

    def _play_start(self, _command: m.PlayStart, _payload: bytes) -> object:
        upload = self._upload
        if upload is None:
            raise RefusedError("not-now", _NOT_ANNOUNCED, reason="not-announced")
        if upload.missing:
            text = f"{upload.missing} rows of the trajectory are missing"
            raise RefusedError("not-now", text, reason="missing-rows")
        self._require("play", State.READY, State.ACTIVE)
        if self._is_led:
            raise RefusedError("not-now", f"{self._leader} is going on", reason="busy")
        everyone = range(len(self._robot.joints))
        self._require_homed(everyone)
        self._require_gains(everyone)
        self._control.play(upload.playback, upload.ways_rad)
        duration_s = upload.playback.cycles * self._period_s
        self._boards.announce("the trajectory", duration_s)
        self._upload = None
        self._machine.activate(True)
        return {"rows": upload.playback.rows, "duration_s": duration_s}

    def _play_stop(self, _command: m.PlayStop, _payload: bytes) -> object:
        if not self._is_led:
            raise RefusedError("not-now", "nothing is being played", reason="not-playing")
        self._control.come_to_rest()
        return {"state": self._machine.state.name.lower()}

    # --- recording --------------------------------------------------------------------------------

    def _record_start(self, command: m.RecordStart, _payload: bytes) -> object:
        if self._output.is_recording:
            text = f"{self._output.recording_name} is being recorded: stop it first"
            raise RefusedError("not-now", text, reason="recording")
        request = self._output.start_recording(command.name)
        return {
            "number": request.number,
            "first_seq": request.first_seq,
            "has_recorder": self._recorder.is_heard,
        }

    def _record_stop(self, _command: m.RecordStop, _payload: bytes) -> object:
        if not self._output.is_recording:
            raise RefusedError("not-now", "nothing is being recorded", reason="not-recording")
        name = self._output.recording_name
        self._output.stop_recording()
        return {"recording": name}

    def _record_mark(self, command: m.RecordMark, _payload: bytes) -> object:
        self._cycle.events.add("mark", command.text)
        return {"seq": self._cycle.events.seq, "is_recorded": self._output.is_recording}

    def _report(self, command: m.Report, _payload: bytes) -> object:
        self._recorder.take(command.report)
        return {}

    # --- checks -----------------------------------------------------------------------------------

    @property
    def _is_led(self) -> bool:
        """Whether all joints move together, so that none can be asked to do something else."""
        return self._control.is_playing or self._control.homing is not None

    @property
    def _leader(self) -> str:
        return "a trajectory" if self._control.is_playing else "homing"

    def _refuse_in_a_stop(self, what: str) -> None:
        if self._machine.state is State.STOPPING:
            text = f"{what}: the robot is stopping; `stop`, `disable` and `reset` are taken"
            raise RefusedError("not-now", text, reason="wrong-state")

    def _require(self, what: str, *states: State) -> None:
        state = self._machine.state
        if state not in states:
            wanted = " or ".join(state.name.lower() for state in states)
            hint = {State.FAULT: "; reset first", State.IDLE: "; enable first"}.get(state, "")
            text = f"{what} needs state {wanted}, the state is {state.name.lower()}{hint}"
            raise RefusedError("not-now", text, reason="wrong-state")
        if self._is_disabling:
            text = f"{what}: the robot is being disabled"
            raise RefusedError("not-now", text, reason="disabling")

    def _require_homed(self, numbers: Sequence[int]) -> None:
        lost = [n for n in numbers if not self._control.tracks[n].axis.is_homed]
        if lost:
            names = ", ".join(self._robot.joints[number].name for number in lost)
            text = f"{names}: the zero is not known since the motors were enabled"
            raise RefusedError("not-homed", f"{text}; `armature send home` finds it")

    def _require_gains(self, numbers: Sequence[int]) -> None:
        """Refuse to lead joints whose gains were all set to zero: they would fall."""
        slack = [
            self._robot.joints[number].name
            for number in numbers
            if self._control.tracks[number].has_no_gains
        ]
        if slack:
            text = f"{', '.join(slack)}: all gains are zero, nothing would hold it; set gains first"
            raise RefusedError("not-now", text, reason="all-gains-zero")

    def _joints(self, names: Sequence[str]) -> list[int]:
        unknown = [name for name in names if name not in self._numbers]
        if unknown:
            there_are = ", ".join(self._numbers)
            text = f"no joint is named {', '.join(unknown)}; there are {there_are}"
            raise RefusedError("unknown", text, reason="unknown-joint")
        if len(set(names)) < len(names):
            text = f"a joint is named twice: {', '.join(names)}"
            raise RefusedError("malformed", text, reason="named-twice")
        return [self._numbers[name] for name in names] or list(range(len(self._robot.joints)))

    def _per_joint(
        self, what: str, values: Sequence[float], numbers: Sequence[int]
    ) -> Sequence[float]:
        if values and len(values) != len(numbers):
            text = f"{what}: {len(values)} values for {len(numbers)} joints"
            raise RefusedError("malformed", text, reason="wrong-count")
        if not all(map(math.isfinite, values)):
            text = f"{what}: {list(values)}, expected finite numbers"
            raise RefusedError("malformed", text, reason="not-finite")
        return values


def _check(joint: str, what: str, value: float, limit: float, unit: str, *, reason: str) -> None:
    if abs(value) > limit:
        text = f"joint {joint}: {what} {beyond(value, limit, unit)}"
        raise RefusedError("out-of-limit", text, reason=reason)


def _posture(track: Track) -> float:
    """Return about where a joint is when nobody says it."""
    axis = track.axis
    return axis.position_rad if axis.is_homed else axis.joint.home_posture_rad


def _is_turning(track: Track) -> bool:
    return abs(track.axis.velocity_rad_s) > _AT_REST * track.axis.speed_max_rad_s
