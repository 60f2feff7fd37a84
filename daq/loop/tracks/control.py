"""What the loop commands in each cycle: the mode of every joint and its motion.

Each joint has a track of its own (`daq.loop.tracks.track`), which makes no step in torque whatever
it is asked; a trajectory and homing move all of them together.
"""

from __future__ import annotations

from collections.abc import Sequence

from daq.loop.events import Events
from daq.loop.io.axis import Axis
from daq.loop.tracks.homing import HomingRun
from daq.loop.tracks.planner import Planner
from daq.loop.tracks.track import Track
from daq.motion.moves import MotionSequence
from daq.motion.planning import Reach, check_reach, plan_playback
from daq.motion.playback import Playback
from daq.motion.torque_check import TorqueCheck
from daq.recording.states import Mode

_TRAJECTORY_OVER = 3
"""In the sequence of `plan_playback`: approach, trajectory, stop, standstill."""

_SLOW_PERIODS, _SLOW_STEPS = 5, 10
"""A loop that leaves out so few periods, after so few cycles again, is slow all the time: behind a
serial port, say."""


class LoopControl:
    """All joints.

    Args:
        axes: In the robot's joint order.
        catch_up_max: Periods after which a pause only delays: boards stop by themselves after as
            long without a command.
        torques: Whether the motors are strong enough for a motion; None where that is not known.

    Attributes:
        tracks: One per joint.
        planner: Makes the motions of single joints.
        homing: The search that is going on.
        is_changed: Whether a mode or a joint's zero has changed; the reader clears it.
        is_busy: Whether there is anything to do in the next cycle.
        period_s: The loop's.
        trajectories: How many were played to their end.
    """

    def __init__(
        self,
        axes: Sequence[Axis],
        events: Events,
        *,
        period_s: float,
        catch_up_max: int = 20,
        torques: TorqueCheck | None = None,
    ) -> None:
        self._events = events
        self._catch_up_max = catch_up_max
        self.tracks = [Track(axis, period_s=period_s) for axis in axes]
        self.planner = Planner(self.tracks, torques, period_s=period_s)
        self.homing: HomingRun | None = None
        self.is_changed = True
        self._joints = [axis.joint for axis in axes]
        self.period_s = period_s
        self._play: MotionSequence | None = None
        self.trajectories = 0
        self._k = 0
        self._steps = _SLOW_STEPS + 1
        self._busy: list[Track] = []
        self.is_busy = False

    @property
    def is_active(self) -> bool:
        """Whether any joint is controlled."""
        return any(track.mode is not Mode.OFF for track in self.tracks)

    @property
    def is_at_rest(self) -> bool:
        """Whether every reference stands still."""
        is_alone = self._play is None and self.homing is None
        return is_alone and all(track.is_at_rest for track in self.tracks)

    @property
    def is_playing(self) -> bool:
        """Whether a trajectory is being followed."""
        return self._play is not None

    # --- what is asked of it; raises before it changes anything -----------------------------------

    def switch_off(self) -> None:
        """Switch every joint off at once: the safe stop has taken over."""
        self._play = None
        self.homing = None
        for track in self.tracks:
            track.switch_off()
        self.note_change()

    def set_mode(
        self, mode: Mode, numbers: Sequence[int], target: Sequence[float], duration_s: float
    ) -> Sequence[float]:
        """Change the mode of some joints.

        Args:
            mode: Off, hold, position, velocity, current or torque.
            numbers: Which joints.
            target: One value per joint in the mode's unit, none for off and hold.
            duration_s: How long a move takes; 0 for as long as it must.

        Returns:
            The targets that they will have: speeds are less where a limit is too near.

        Raises:
            MotionLimitError: The target or the way there is beyond a limit.
        """
        chosen = [self.tracks[number] for number in numbers]
        if mode is Mode.HOLD:
            # One that stands, or is coming to rest already, is left alone.
            chosen = [track for track in chosen if not track.is_holding]
            plans = [(track, self.planner.stop(track)) for track in chosen]
        elif mode is Mode.POSITION:
            moves = self.planner.moves(chosen, target, duration_s)
            plans = list(zip(chosen, moves, strict=True))
        elif mode is Mode.VELOCITY:
            changes = self.planner.speeds(chosen, target)
            plans = [
                (track, way)
                for track, wanted, (_, way) in zip(chosen, target, changes, strict=True)
                # A joystick says the same again and again.
                if not track.is_asked(wanted) and not track.is_kept
            ]
            for track, wanted in zip(chosen, target, strict=True):
                track.asked_rad_s = wanted
            target = [speed_rad_s for speed_rad_s, _ in changes]
        else:
            for track, value in zip(chosen, target or [0.0] * len(chosen), strict=True):
                is_torque = mode is Mode.TORQUE
                track.drive(mode, value * track.axis.amperes_per_nm if is_torque else value)
            plans = []
        for track, motion in plans:
            track.enter(mode, motion)
            self.note_ki(track)
        self.note_change()
        return target

    def note_ki(self, track: Track) -> None:
        """Say so if a joint has to go without the Ki that it should have."""
        if track.lacks_ki:
            name = track.axis.joint.name
            text = f"joint {name}: led with less Ki than it should until it is enabled anew; its "
            text += "board's integral was made with another one, or what has become of it is not "
            self._events.add("integral", f"{text}known", severity="warning", source=name)

    def play(self, playback: Playback, ways: Sequence[Reach]) -> None:
        """Follow a trajectory with all joints, from where they are.

        Args:
            playback: The trajectory, whose rows were checked.
            ways: How far down and up it takes each joint.

        Raises:
            MotionLimitError: Its first row cannot be reached inside the limits, or some row is
                further than the joint can be led.
        """
        present = [track.start() for track in self.tracks]
        positions, speeds, torques = zip(*present, strict=True)
        reaches = [track.axis.reach_rad for track in self.tracks]
        for track, reach, way, q in zip(self.tracks, reaches, ways, positions, strict=True):
            check_reach(track.axis.joint.name, q, track.axis.fence_rad)
            for position_rad in way:
                check_reach(track.axis.joint.name, position_rad, reach)
        self.planner.check_playback(playback)
        motion = plan_playback(
            self._joints,
            positions,
            speeds,
            playback,
            period_s=self.period_s,
            start_torque=torques,
            reaches=reaches,
        )
        for track in self.tracks:
            track.enter(Mode.PLAY, None)
            self.note_ki(track)
        self._play, self._k = motion, 1  # as in `Track.enter`
        duration_s = playback.cycles * self.period_s
        self._events.add("play", f"a trajectory of {duration_s:.3f} s begins")
        self.note_change()

    def home(self, run: HomingRun) -> None:
        """Begin to look for every joint's index."""
        for track in self.tracks:
            position_rad, _, _ = track.present()
            track.lead(position_rad, 0.0, 0.0)
            track.enter(Mode.HOME, None)
            self.note_ki(track)
        self.homing = run
        self.note_change()

    def come_to_rest(self) -> None:
        """Bring every moving joint smoothly to rest and hold it."""
        if self._play is not None:
            self._events.add("play", "the trajectory is left before its end", severity="warning")
        self._play = None
        self.homing = None
        moving = [n for n, track in enumerate(self.tracks) if track.mode is not Mode.OFF]
        pushed = [track for track in self.tracks if track.is_pushed]
        for track in pushed:
            track.stop_pushing()
        self.set_mode(Mode.HOLD, moving, (), 0.0)
        for track in pushed:
            track.take_hold()

    def give_way(self, number: int, iq_a: float) -> None:
        """Leave a joint a current and its damping, and bring what moves with it to rest.

        It is pushed against something, or its encoder is dead.
        """
        if self._play is not None or self.homing is not None:
            self.come_to_rest()
        self.tracks[number].give_way(iq_a)
        self.note_change()

    # --- every cycle ------------------------------------------------------------------------------

    def skip(self, periods: int) -> None:
        """Move on by the periods that were left out: motions go by the clock.

        References go on from where the boards have them, and catch up with the motion smoothly.
        After a long pause a motion goes on where it stopped.
        """
        counted = min(periods, self._catch_up_max)
        is_slow = periods <= _SLOW_PERIODS and self._steps <= _SLOW_STEPS
        self._steps = 0
        if self._play is not None:
            self._k += counted
            row, count = self._play.row(self._k - 1), len(self.tracks)
            for number, track in enumerate(self.tracks):
                planned = row[number], row[count + number], row[2 * count + number]
                track.resume(planned, periods, is_slow=is_slow)
        elif self.homing is not None:
            for track in self.tracks:
                # A search only takes longer.
                track.resume(track.reference, periods, is_slow=is_slow)
        else:
            for track in self._busy:
                track.skip(counted, periods, is_slow=is_slow)

    def step(self) -> None:
        """Write the next commands."""
        self._steps += 1
        if self._play is not None:
            self._step_play(self._play)
        elif self.homing is not None:
            self._step_homing(self.homing)
        elif self._busy:
            for track in self._busy:
                track.step()
            if not all(track.is_busy for track in self._busy):
                self._busy = [track for track in self._busy if track.is_busy]
                self.is_busy = bool(self._busy)

    def _step_play(self, motion: MotionSequence) -> None:
        count = len(self.tracks)
        row = motion.row(self._k)
        self._k += 1
        for number, track in enumerate(self.tracks):
            track.follow(row[number], row[count + number], row[2 * count + number])
        if motion.number == _TRAJECTORY_OVER:
            self._play = None
            self.trajectories += 1
            self._events.add("play", "the trajectory is over")
            for track in self.tracks:
                track.enter(Mode.HOLD, None)
            self.note_change()

    def _step_homing(self, homing: HomingRun) -> None:
        for track, (motor_rad, motor_rad_s) in zip(self.tracks, homing.step(), strict=True):
            per_joint = track.axis.motor_per_joint
            track.follow(motor_rad / per_joint, motor_rad_s / per_joint, 0.0)
        if homing.is_over:
            self._end_homing(homing)

    def _end_homing(self, homing: HomingRun) -> None:
        """Take the zeros that were found, and hold every joint where it is."""
        for track, zero in zip(self.tracks, homing.zeros(), strict=True):
            if zero is not None:
                before_rad = track.axis.position_rad
                track.axis.set_home(track.axis.motor_offset_rad + zero)
                track.shift(track.axis.position_rad - before_rad)
            track.enter(Mode.HOLD, None)
        self.homing = None
        for joint, text in homing.problems.items():
            self._events.add("home", text, severity="error", source=joint)
        if not homing.problems:
            postures = (
                f"{track.axis.joint.name} {track.axis.position_rad:.4f} rad"
                for track in self.tracks
            )
            self._events.add("home", f"every joint is homed: {', '.join(postures)}")
        self.note_change()

    def note_change(self) -> None:
        """Note that somebody changed what a joint shall do."""
        self.note_busy()
        self.is_changed = True

    def note_busy(self) -> None:
        """Note which joints there is something to do for."""
        self._busy = [track for track in self.tracks if track.is_busy]
        is_led = self._play is not None or self.homing is not None
        self.is_busy = is_led or bool(self._busy)
