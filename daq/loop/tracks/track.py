"""One joint of the loop: its mode, its motion, its gains, and no step in torque between them.

References are motions that start where the last one was (or where the joint is), and gains and
feed-forward slew to new values over `BLEND_S`. Which motion that is, `daq.loop.tracks.control`
decides.
"""

from __future__ import annotations

from daq.boards.wire_range import BLEND_S
from daq.loop.io.axis import Axis, Law
from daq.loop.tracks.idle_integral import IdleIntegralWatch
from daq.motion.moves import Motion
from daq.recording.states import Mode
from daq.robot import Gains

_FOLLOWING = (Mode.HOLD, Mode.POSITION, Mode.VELOCITY, Mode.PLAY, Mode.HOME)
"""Modes in which the board controls position or velocity, so that there is a reference."""
_TORQUE_CARRYING = (Mode.HOLD, Mode.POSITION, Mode.PLAY, Mode.HOME)
"""Modes whose motions begin with the feed-forward torque that there is."""
_NO_GAINS = Gains(kp_a_per_rad=0.0, kd_a_s_per_rad=0.0)


class Track:
    """One joint: its mode, and what it is being led along.

    Attributes:
        mode: What the joint does.
        reference: Position (rad), velocity (rad/s) and torque (N·m) of the last command.
    """

    def __init__(self, axis: Axis, *, period_s: float) -> None:
        self.axis = axis
        self.mode = Mode.OFF
        self.reference = (0.0, 0.0, 0.0)
        control = axis.joint.control
        self._gains = dict.fromkeys(_FOLLOWING, control.position)
        self._gains[Mode.VELOCITY] = control.velocity
        self._period_s = period_s
        self._motion: Motion | None = None
        self._k = 0
        self._law = Law()
        self._goal = Law()
        self._change = Law()
        self._blend_cycles = max(1, round(BLEND_S / period_s))
        self._blending = 0
        self._ki_in_use = 0.0
        self._idle_integral = IdleIntegralWatch(axis)

    @property
    def is_busy(self) -> bool:
        """Whether there is anything to do for it in the next cycle."""
        return self._motion is not None or self._blending > 0

    @property
    def is_at_rest(self) -> bool:
        """Whether its reference stands still."""
        return self._motion is None and not (self.is_led and self.reference[1])

    @property
    def is_ending(self) -> bool:
        """Whether it follows a motion that ends at rest."""
        return self._motion is not None and self._motion.cycles is not None

    @property
    def is_led(self) -> bool:
        """Whether its reference matters: with all gains at zero it does not."""
        law = self._law
        return bool(law.kp_a_per_rad or law.kd_a_s_per_rad or law.ki_a_per_rad_s)

    @property
    def lacks_ki(self) -> bool:
        """Whether it has less Ki than it should: the board's integral is not made for it."""
        gains = self._gains.get(self.mode, _NO_GAINS)
        return bool(self.axis.has_integrator and gains.ki_a_per_rad_s > self._goal.ki_a_per_rad_s)

    @property
    def is_slack(self) -> bool:
        """Whether it would follow a reference if it had gains."""
        return self.mode in _FOLLOWING and not self.is_led

    @property
    def is_holding(self) -> bool:
        """Whether it is held where it is, or is coming to rest for that."""
        return self.mode is Mode.HOLD and self.is_led

    # --- what is asked of it ----------------------------------------------------------------------

    def enter(self, mode: Mode, motion: Motion | None, *, iq_ff_a: float = 0.0) -> None:
        """Change the mode; `motion` begins with the next cycle."""
        self.mode = mode
        # Row 0 is the last command: to send it again would hold up a moving joint for a cycle.
        self._motion, self._k = motion, 1
        if mode not in _TORQUE_CARRYING:
            self._absorb_torque()
        self._slew(self._gains.get(mode, _NO_GAINS), iq_ff_a)

    def present(self) -> tuple[float, float, float]:
        """Return where a new motion must begin: at the reference, or where the joint is."""
        if self.is_led:
            return self.reference
        return self.axis.position_rad, self.axis.velocity_rad_s, self.reference[2]

    @property
    def position_gains(self) -> Gains:
        """The gains for everything but velocity control."""
        return self._gains[Mode.HOLD]

    def set_position_gains(self, gains: Gains) -> None:
        """Set the gains for everything but velocity control."""
        self._gains.update({mode: gains for mode in _FOLLOWING if mode is not Mode.VELOCITY})
        if self.mode in _FOLLOWING and self.mode is not Mode.VELOCITY:
            if not self.is_led:
                # Without gains the joint went its own way: lead it from where it is now.
                self._motion = None
                self.lead(self.axis.position_rad, 0.0, 0.0)
            self._slew(gains, self._goal.iq_ff_a)

    def switch_off(self) -> None:
        """Drop every control law at once: the motors have no current any more."""
        self.mode = Mode.OFF
        self._motion = None
        self._law, self._goal = Law(), Law()
        self._blending = 0
        self.reference = (0.0, 0.0, 0.0)
        self._ki_in_use = 0.0
        self._idle_integral.clear()

    def shift(self, offset_rad: float) -> None:
        """Shift all positions with the joint's zero; nothing moves."""
        position_rad, velocity_rad_s, torque_nm = self.reference
        self.reference = position_rad + offset_rad, velocity_rad_s, torque_nm

    # --- every cycle ------------------------------------------------------------------------------

    def step(self) -> None:
        """Write the joint's part of the next command: the gains belong to the new reference."""
        motion = self._motion
        if motion is not None:
            k = self._k
            self.lead(*motion.row(k))
            self._k = k + 1
            if motion.cycles is not None and k >= motion.cycles:
                self._motion = None
        elif self._blending and self.mode not in _FOLLOWING:
            # Until its gains are gone the reference goes on as it was: held, it would brake.
            position_rad, velocity_rad_s, _ = self.reference
            self.lead(position_rad + velocity_rad_s * self._period_s, velocity_rad_s, 0.0)
        if self._blending:
            self._blend()

    def skip(self, periods: int) -> None:
        """Bring the command that goes out next to where the motion is by now."""
        if self._motion is not None:
            self._k += periods
            # What was going to be sent is row k - 1.
            self.lead(*self._motion.row(self._k - 1))
        elif self._blending and self.mode not in _FOLLOWING:
            position_rad, velocity_rad_s, torque_nm = self.reference
            travelled_rad = velocity_rad_s * self._period_s * periods
            self.lead(position_rad + travelled_rad, velocity_rad_s, torque_nm)

    def lead(self, position_rad: float, velocity_rad_s: float, torque_nm: float) -> None:
        """Write a reference."""
        axis = self.axis
        axis.refer(position_rad, velocity_rad_s)
        if torque_nm or self.reference[2]:
            axis.feed(self._law.iq_ff_a + torque_nm * axis.amperes_per_nm)
        self.reference = position_rad, velocity_rad_s, torque_nm

    def mind_integral(self, elapsed_s: float) -> None:
        """Keep up with what the board's integral may be while Ki = 0; called now and then."""
        if self._law.ki_a_per_rad_s:
            self._idle_integral.clear()
        else:
            self._idle_integral.follow(elapsed_s, is_led=self.is_led or self._blending > 0)

    def _absorb_torque(self) -> None:
        """Let the law slew away the torque of a motion that ends."""
        position_rad, velocity_rad_s, torque_nm = self.reference
        self._law.iq_ff_a += torque_nm * self.axis.amperes_per_nm
        self.reference = position_rad, velocity_rad_s, 0.0

    def _slew(self, gains: Gains, ff_a: float) -> None:
        law, share = self._law, 1.0 / self._blend_cycles
        ki = gains.ki_a_per_rad_s if self.axis.has_integrator else 0.0
        if ki > self._ki_in_use and (self._ki_in_use or not self._idle_integral.is_small(ki)):
            # An integral belongs to the Ki that it was made with: more would multiply its current.
            ki = self._ki_in_use
        self._goal = goal = Law(gains.kp_a_per_rad, gains.kd_a_s_per_rad, ki, ff_a)
        self._change = Law(
            share * (goal.kp_a_per_rad - law.kp_a_per_rad),
            share * (goal.kd_a_s_per_rad - law.kd_a_s_per_rad),
            share * (goal.ki_a_per_rad_s - law.ki_a_per_rad_s),
            share * (goal.iq_ff_a - law.iq_ff_a),
        )
        self._blending = self._blend_cycles

    def _blend(self) -> None:
        self._blending = left = self._blending - 1
        law, goal, change = self._law, self._goal, self._change
        law.kp_a_per_rad = goal.kp_a_per_rad - left * change.kp_a_per_rad
        law.kd_a_s_per_rad = goal.kd_a_s_per_rad - left * change.kd_a_s_per_rad
        law.ki_a_per_rad_s = goal.ki_a_per_rad_s - left * change.ki_a_per_rad_s
        law.iq_ff_a = goal.iq_ff_a - left * change.iq_ff_a
        if not left:
            self._ki_in_use = goal.ki_a_per_rad_s
        self.axis.obey(law)
        if self.reference[2]:
            self.axis.feed(law.iq_ff_a + self.reference[2] * self.axis.amperes_per_nm)
