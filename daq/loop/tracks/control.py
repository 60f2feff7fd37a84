"""What the loop commands in each cycle: the mode of every joint and its motion.

Each joint has a track of its own (`daq.loop.tracks.track`), which makes no step in torque whatever
it is asked; a trajectory and homing move all of them together.
"""

from __future__ import annotations

from collections.abc import Sequence

from daq.loop.events import Events
from daq.loop.io.axis import Axis
from daq.loop.tracks.homing import HomingRun
from daq.loop.tracks.track import Track
from daq.motion.moves import Motion, MotionSequence
from daq.motion.planning import Reach, check_reach, plan_move, plan_playback, plan_speed, stop_move
from daq.motion.playback import Playback
from daq.recording.states import Mode

_TRAJECTORY_OVER = 3
"""In the sequence of `plan_playback`: approach, trajectory, stop, standstill."""


class LoopControl:
    """All joints.

    Args:
        axes: In the robot's joint order.
        catch_up_max: Periods after which a pause only delays: boards stop by themselves after as
            long without a command.

    Attributes:
        tracks: One per joint.
        homing: The search that is going on.
        is_changed: Whether a mode or a joint's zero has changed; the reader clears it.
        is_busy: Whether there is anything to do in the next cycle.
        trajectories: How many were played to their end.
    """

    def __init__(
        self, axes: Sequence[Axis], events: Events, *, period_s: float, catch_up_max: int = 20
    ) -> None:
        self._events = events
        self._catch_up_max = catch_up_max
        self.tracks = [Track(axis, period_s=period_s) for axis in axes]
        self.homing: HomingRun | None = None
        self.is_changed = True
        self._joints = [axis.joint for axis in axes]
        self._period_s = period_s
        self._play: MotionSequence | None = None
        self.trajectories = 0
        self._k = 0
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
    ) -> None:
        """Change the mode of some joints.

        Args:
            mode: Off, hold, position, velocity, current or torque.
            numbers: Which joints.
            target: One value per joint in the mode's unit, none for off and hold.
            duration_s: How long a move takes; 0 for as long as it must.

        Raises:
            MotionLimitError: The target or the way there is beyond a limit.
        """
        plans: list[tuple[Track, Motion | None, float]] = []
        for place, number in enumerate(numbers):
            track = self.tracks[number]
            if mode is Mode.HOLD and track.is_holding:
                continue  # it stands, or is coming to rest already
            joints, (q, dq, torque) = [self._joints[number]], track.present()
            motion: Motion | None = None
            ff_a = 0.0
            if mode in (Mode.HOLD, Mode.POSITION, Mode.VELOCITY):
                check_reach(joints[0].name, q, track.axis.fence_rad)
            reaches = [track.axis.reach_rad]
            if mode is Mode.HOLD:
                motion = self._stop(track, q, dq, torque)
            elif mode is Mode.POSITION:
                motion = plan_move(
                    joints,
                    [q],
                    [dq],
                    [target[place]],
                    period_s=self._period_s,
                    duration_s=duration_s,
                    start_torque=[torque],
                    reaches=reaches,
                )
            elif mode is Mode.VELOCITY:
                motion = plan_speed(
                    joints, [q], [dq], [target[place]], period_s=self._period_s, reaches=reaches
                )
            elif mode is Mode.CURRENT:
                ff_a = target[place]
            elif mode is Mode.TORQUE:
                ff_a = target[place] * track.axis.amperes_per_nm
            plans.append((track, motion, ff_a))
        for track, motion, ff_a in plans:
            track.enter(mode, motion, iq_ff_a=ff_a)
            self.note_ki(track)
        self.note_change()

    def note_ki(self, track: Track) -> None:
        """Say so if a joint has to go without the Ki that it should have."""
        if track.lacks_ki:
            name = track.axis.joint.name
            text = f"joint {name}: led with less Ki than it should until it is enabled anew; its "
            text += "board's integral was made with another one, or what has become of it is not "
            self._events.add("integral", f"{text}known", severity="warning", source=name)

    def _stop(self, track: Track, q: float, dq: float, torque: float) -> Motion:
        """Plan to bring a joint to rest, harder where its wire's range ends."""
        joint, fence = track.axis.joint, track.axis.fence_rad
        motion = stop_move(
            [joint], [q], [dq], period_s=self._period_s, start_torque=[torque], reaches=[fence]
        )
        check_reach(joint.name, motion.row(motion.cycles or 0)[0], fence)
        return motion

    def play(self, playback: Playback, ways: Sequence[Reach]) -> None:
        """Follow a trajectory with all joints, from where they are.

        Args:
            playback: The trajectory, whose rows were checked.
            ways: How far down and up it takes each joint.

        Raises:
            MotionLimitError: Its first row cannot be reached inside the limits, or some row is
                further than the joint can be led.
        """
        present = [track.present() for track in self.tracks]
        positions, speeds, torques = zip(*present, strict=True)
        reaches = [track.axis.reach_rad for track in self.tracks]
        for track, reach, way, q in zip(self.tracks, reaches, ways, positions, strict=True):
            check_reach(track.axis.joint.name, q, track.axis.fence_rad)
            for position_rad in way:
                check_reach(track.axis.joint.name, position_rad, reach)
        motion = plan_playback(
            self._joints,
            positions,
            speeds,
            playback,
            period_s=self._period_s,
            start_torque=torques,
            reaches=reaches,
        )
        for track in self.tracks:
            track.enter(Mode.PLAY, None)
            self.note_ki(track)
        self._play, self._k = motion, 1  # as in `Track.enter`
        duration_s = playback.cycles * self._period_s
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
        self.set_mode(Mode.HOLD, moving, (), 0.0)

    # --- every cycle ------------------------------------------------------------------------------

    def skip(self, periods: int) -> None:
        """Move on by the periods that were left out: motions go by the clock.

        Boards that advance their references by themselves have done so meanwhile; one that stood
        still would pull the joint back. After a long pause it goes on where it stopped.
        """
        periods = min(periods, self._catch_up_max)
        for track in self._busy:
            track.skip(periods)
        if self._play is not None:
            self._k += periods
            row, count = self._play.row(self._k - 1), len(self.tracks)
            for number, track in enumerate(self.tracks):
                track.lead(row[number], row[count + number], row[2 * count + number])

    def step(self) -> None:
        """Write the next commands."""
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
            track.lead(row[number], row[count + number], row[2 * count + number])
            if track.is_busy:
                track.step()
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
            track.lead(motor_rad / per_joint, motor_rad_s / per_joint, 0.0)
            if track.is_busy:
                track.step()
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
        self._busy = [track for track in self.tracks if track.is_busy]
        is_led = self._play is not None or self.homing is not None
        self.is_busy = is_led or bool(self._busy)
        self.is_changed = True
