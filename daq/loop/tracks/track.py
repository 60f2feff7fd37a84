"""One joint of the loop: its mode, its motion, its gains, and no step in torque between them.

References are motions that start where the last one was (or where the joint is), and gains and
feed-forward slew to new values over `BLEND_S`. What old gains gave to hold the joint goes into the
feed-forward as they fade, so that a loaded joint stays where it is. Which motion that is,
`daq.loop.tracks.control` decides.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

from daq.boards.wire_range import BLEND_S
from daq.control.stability import StableGains
from daq.loop.io.axis import Axis, Law
from daq.loop.tracks.catch_up import CatchUp, Reference
from daq.loop.tracks.handover import Handover
from daq.loop.tracks.idle_integral import IdleIntegralWatch
from daq.loop.tracks.standing import Standing, StandingWatch
from daq.motion.moves import Motion
from daq.motion.planning import acceleration_max_rad_s2
from daq.recording.states import DRIVEN_MODES, Mode
from daq.robot import Gains

_FOLLOWING = (Mode.HOLD, Mode.POSITION, Mode.VELOCITY, Mode.PLAY, Mode.HOME)
"""Modes in which the board controls position or velocity, so that there is a reference."""
_TORQUE_CARRYING = (Mode.HOLD, Mode.POSITION, Mode.PLAY, Mode.HOME)
"""Modes whose motions begin with the feed-forward torque that there is."""
_TO_A_PLACE = (Mode.POSITION, Mode.PLAY)
_LED_BY_OTHERS = (Mode.PLAY, Mode.HOME)
_NO_GAINS = Gains(kp_a_per_rad=0.0, kd_a_s_per_rad=0.0)
CARRIED_RAD_S = 0.03
"""A joint that is led faster hangs on its motor."""
_STILL_RAD_S = 0.08
"""Less than this is what counts that come and go look like behind the filter of a board."""
_FOUND_A_PER_S = 800.0
"""After a pause in which a board held its reference: so fast its current goes back."""
_JUST_NOW = -1
"""Cycles that are left of that, before the joint has been measured."""
_SAG_RAD = 0.002
"""At the joint: a joint that rests further from its reference hangs on its stiffness."""
_LEFT_RAD = 0.02
"""At the joint: one that is further from the reference of gains that fade is not led back there."""
_LITTLE_SHARE, _LITTLE_PERIODS = 0.02, 5
"""Of the current limit: a step of the reference after a short pause may take so much."""
_SWING, _SWING_MAX_RAD = 2.5, 0.3
"""A joint on its stiffness that is no longer accelerated swings beyond its rest."""
_SWAY, _SWAY_MAX_S = 1.1, 0.15
"""Its speed swings by a share of what it gains within a radian of its own oscillation."""


class Track:
    """One joint: its mode, and what it is being led along.

    Attributes:
        mode: What the joint does.
        reference: Position (rad), velocity (rad/s) and torque (N·m) of the last command.
        asked_rad_s: The speed that was asked for last; it may have less, where a limit is near.
    """

    def __init__(self, axis: Axis, *, period_s: float) -> None:
        self.axis = axis
        self.mode = Mode.OFF
        self.reference = (0.0, 0.0, 0.0)
        self.asked_rad_s = 0.0
        self._is_guarded = False
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
        self._idle_integral = IdleIntegralWatch(axis)
        self._standing = StandingWatch(axis)
        self._led_from: tuple[Reference, float] | None = None
        self._planned = self.reference
        self._catch_up: CatchUp | None = None
        self._lost = 0
        self._before_a = self._beside_a = self._extra_a = 0.0

    @property
    def is_busy(self) -> bool:
        """Whether there is anything to do for it in the next cycle."""
        is_led = self._motion is not None or self._catch_up is not None
        return is_led or self._blending > 0

    @property
    def is_at_rest(self) -> bool:
        """Whether its reference stands still."""
        is_led = self._motion is not None or self._catch_up is not None
        return not is_led and not (self.is_led and self.reference[1])

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
    def follows(self) -> bool:
        """Whether there is a reference, and so far as it has gains they lead it there."""
        return self.mode in _FOLLOWING

    def is_asked(self, speed_rad_s: float) -> bool:
        """Whether it is on its way to a speed already, as it was asked."""
        is_underway = self.mode is Mode.VELOCITY and self._motion is not None
        return is_underway and not self.is_ending and self.asked_rad_s == speed_rad_s

    @property
    def is_kept(self) -> bool:
        """Whether it is being stopped in front of a limit.

        Whatever speed is asked for, to begin anew each time would never bring it to rest.
        """
        return self._is_guarded and self.is_ending and self.reference[1] != 0.0

    def guard(self) -> None:
        """Note that the present motion stops it in front of a limit."""
        self._is_guarded = True

    def overshoot_rad(self, acceleration_rad_s2: float) -> float:
        """Return how far it swings beyond its reference when that stops from an acceleration."""
        axis = self.axis
        kp = self._gains[Mode.HOLD].kp_a_per_rad
        stiffness_nm_per_rad = max(kp * axis.nm_per_a * axis.motor_per_joint, 1e-3)
        bent_rad = axis.inertia_max_kg_m2 * acceleration_rad_s2 / stiffness_nm_per_rad
        return min(_SWING * bent_rad, _SWING_MAX_RAD)

    def overshoot_rad_s(self, acceleration_rad_s2: float) -> float:
        """Return by how much it becomes faster than a reference that has got its speed so."""
        axis = self.axis
        kp = self._gains[Mode.VELOCITY].kp_a_per_rad
        stiffness_nm_per_rad = max(kp * axis.nm_per_a * axis.motor_per_joint, 1e-3)
        sway_s = math.sqrt(axis.inertia_max_kg_m2 / stiffness_nm_per_rad)
        return _SWAY * acceleration_rad_s2 * min(sway_s, _SWAY_MAX_S)

    @property
    def is_holding(self) -> bool:
        """Whether it is held where it is, or is coming to rest for that."""
        return self.mode is Mode.HOLD and self.is_led

    # --- what is asked of it ----------------------------------------------------------------------

    def enter(self, mode: Mode, motion: Motion | None) -> None:
        """Follow a reference; `motion` begins with the next cycle."""
        self._settle_extra()
        if motion is not None or mode is not Mode.HOLD:
            self._catch_up = None  # a new motion begins where the reference is
            self._lost = 0
        self._led_from = None
        if mode in _TO_A_PLACE and self._is_hanging:
            self._take_up_sag()
        if self._has_left:
            self._law = Law(iq_ff_a=self.axis.iq_mean_a)
        if not self.is_led:
            self.reference = self.present()  # what the board has did not matter
        gains, is_moving = self._gains[mode], not self._is_still
        self.mode, self._is_guarded = mode, False
        # Row 0 is the last command: to send it again would hold up a moving joint for a cycle.
        self._motion, self._k = motion, 1
        if mode not in _TORQUE_CARRYING:
            self._absorb_torque()
        self._change_gains(gains, is_moving=is_moving)

    def drive(self, mode: Mode, iq_ff_a: float) -> None:
        """Follow no reference any more, but have a current; in mode off, none."""
        self._settle_extra()
        self._catch_up = self._led_from = None
        self.mode, self._motion = mode, None
        self.axis.is_carried = False  # somebody else may lay it down somewhere
        self._absorb_torque()
        self._slew(Law(iq_ff_a=iq_ff_a))

    def start(self) -> Reference:
        """Return where a motion to a place must begin: a joint at rest is there where it is.

        Else a motion to where it hangs would end as far below as it hangs below its reference now.
        """
        if self._is_hanging:
            return self.axis.position_rad, 0.0, self.reference[2]
        return self.present()

    @property
    def _is_hanging(self) -> bool:
        """Whether it rests beside its reference, held by its stiffness and no integral."""
        sag_rad = self.axis.error_rad / self.axis.motor_per_joint
        is_held = self._law.kp_a_per_rad > 0.0 and not self._law.ki_a_per_rad_s
        is_held = is_held and abs(sag_rad) > _SAG_RAD
        return is_held and self._is_still and not self._handover.is_cut_off

    def _take_up_sag(self) -> None:
        """Lead it from where it is, with the current that holds it there."""
        law, axis = self._law, self.axis
        law.iq_ff_a += law.kp_a_per_rad * axis.error_rad
        self._feed()
        self.lead(axis.position_rad, 0.0, self.reference[2])

    @property
    def _is_still(self) -> bool:
        """Whether both its reference and the joint stand still."""
        is_led_on = self._catch_up is not None or self.reference[1] != 0.0
        return not is_led_on and abs(self.axis.velocity_rad_s) < _STILL_RAD_S

    def present(self) -> tuple[float, float, float]:
        """Return where a new motion must begin: at the reference, or where the joint is."""
        if self.is_led and not self._has_left:
            return self.reference
        return self.axis.position_rad, self.axis.velocity_rad_s, self.reference[2]

    @property
    def _has_left(self) -> bool:
        """Whether something else moves it away from its reference, while its gains fade."""
        axis, is_fading = self.axis, self.mode not in _FOLLOWING and self.is_led
        is_moving = abs(axis.velocity_rad_s) >= _STILL_RAD_S
        return is_fading and is_moving and abs(self.reference[0] - axis.position_rad) > _LEFT_RAD

    def foreseen(self, k: int) -> tuple[float, float, float]:
        """Return where it will be led in k cycles; where it is if nothing leads it."""
        if self._motion is not None:
            q, dq, torque = self._motion.row(self._k - 1 + k)
            return q, dq, torque
        return self.reference if self.is_led else (self.axis.position_rad, 0.0, 0.0)

    def hastening_rad_s2(self, cycles: int) -> float:
        """Return by how much its reference has been accelerated at most, lately."""
        if self._motion is None:
            return acceleration_max_rad_s2(self.axis.joint) if self.mode is Mode.PLAY else 0.0
        last = self._k - 1
        rows = range(max(0, last - cycles), last + 1, max(1, cycles // 4))
        speeds = [self._motion.row(k)[1] for k in (*rows, last)]
        steps = zip(itertools.pairwise(speeds), itertools.pairwise((*rows, last)), strict=True)
        return max(
            (abs(b - a) / ((n - m) * self._period_s) for (a, b), (m, n) in steps if n > m),
            default=0.0,
        )

    @property
    def has_no_gains(self) -> bool:
        """Whether nothing but velocity control would hold it."""
        gains = self.position_gains
        return not (gains.kp_a_per_rad or gains.kd_a_s_per_rad or self._ki(gains))

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
                self._motion = self._catch_up = None
                self.lead(self.axis.position_rad, 0.0, 0.0)
            self._change_gains(gains)

    def unstable(self, gains: Gains) -> str:
        """Return why the joint would swing with gains, in words; empty where it does not."""
        axis = self.axis
        stable = StableGains(
            axis.joint,
            axis.inertia_max_kg_m2,
            1.0 / (axis.nm_per_a * axis.motor_per_joint),
            axis.behaviour.velocity_filter_hz,
        )
        return stable.problem(gains, self._ki(gains))

    def gain_problem(self, gains: Gains) -> str:
        """Return why gains cannot be changed now, in words; empty where they can."""
        if self.mode not in _FOLLOWING or self.mode is Mode.VELOCITY:
            return ""
        ki, law = self._ki(gains), self._law
        if ki > law.ki_a_per_rad_s and not self._may_raise(ki):
            if gains.ki_a_per_rad_s != self.position_gains.ki_a_per_rad_s:
                return self._no_ki(ki)
            ki = law.ki_a_per_rad_s  # nobody asks for more: it goes without, as it does now
        if not self.is_led:
            return ""
        return self._handover.problem(gains, ki, is_moving=not self._is_still)

    def _no_ki(self, ki: float) -> str:
        return (
            f"Ki cannot rise from {self._law.ki_a_per_rad_s:.4g} to {ki:.4g} while it is enabled: "
            "what its board's integral holds would be multiplied, or is not known; disable it, "
            "enable it and set its gains before anything else"
        )

    @property
    def is_pushed(self) -> bool:
        """Whether its current moves it, and does not only hold it.

        If it faded as gains come, it would push on, to nearly twice the speed.
        """
        axis, iq_ff_a = self.axis, self._law.iq_ff_a
        is_moving = abs(axis.velocity_rad_s) >= _STILL_RAD_S
        is_driving = iq_ff_a * axis.nm_per_a * axis.velocity_rad_s > 0.0
        return self.mode in DRIVEN_MODES and is_moving and is_driving

    def stop_pushing(self) -> None:
        """Take its current away at once, and what is left of its gains, if it is driven by one."""
        if self.mode in DRIVEN_MODES:
            self._law, self._blending, self._extra_a = Law(), 0, 0.0
            self.axis.obey(self._law)

    def take_hold(self) -> None:
        """Have the gains of its mode at once.

        A joint that nobody led gets a reference where it is: there is no step. Gains that come
        slowly would let it run ahead of a reference that slows down, and then throw it back.
        """
        self._blending = 0
        self._law = replace(self._goal)
        self.axis.obey(self._law)

    def give_way(self, iq_ff_a: float) -> None:
        """Have no stiffness and no motion any more, at once: only a current, and damping."""
        kd = self._gains[Mode.VELOCITY].kd_a_s_per_rad
        self.mode, self._motion, self._blending = Mode.CURRENT, None, 0
        self._catch_up = self._led_from = None
        self._extra_a = 0.0
        self.axis.is_carried = False
        self._law, self._goal = Law(0.0, kd, 0.0, iq_ff_a), Law(0.0, kd, 0.0, iq_ff_a)
        self.reference = self.axis.position_rad, 0.0, 0.0
        self.axis.refer(self.axis.position_rad, 0.0)
        self.axis.obey(self._law)

    def add_current(self, iq_a: float) -> None:
        """Have so much more current, until told otherwise."""
        self._extra_a = iq_a
        self._feed()

    def _settle_extra(self) -> None:
        """Go on from the current that it has, if it was restrained; a knock is over."""
        if self.mode in DRIVEN_MODES:
            self._law.iq_ff_a += self._extra_a
        self._extra_a = 0.0

    def restrain(self, low_a: float, high_a: float) -> None:
        """Have no current beyond these, until told otherwise, if it is driven by one."""
        if self.mode in DRIVEN_MODES:
            given_a = self._law.iq_ff_a
            self.add_current(min(max(given_a, low_a), high_a) - given_a)

    def switch_off(self) -> None:
        """Drop every control law at once: the motors have no current any more."""
        self.mode = Mode.OFF
        self._motion = self._catch_up = self._led_from = None
        self._lost, self._extra_a = 0, 0.0
        self._law, self._goal = Law(), Law()
        self._blending = 0
        self.reference = self._planned = (0.0, 0.0, 0.0)
        self._idle_integral.begin()

    def shift(self, offset_rad: float) -> None:
        """Shift all positions with the joint's zero; nothing moves."""
        position_rad, velocity_rad_s, torque_nm = self.reference
        self.reference = position_rad + offset_rad, velocity_rad_s, torque_nm
        planned_rad, planned_rad_s, planned_nm = self._planned
        self._planned = planned_rad + offset_rad, planned_rad_s, planned_nm
        if self._catch_up is not None:
            self._catch_up.shift(offset_rad)
        self._standing.begin()

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
            if self._lost:
                self.reference = self._find_again(1)
                self._lost = 0
            position_rad, velocity_rad_s, _ = self.reference
            self.lead(position_rad + velocity_rad_s * self._period_s, velocity_rad_s, 0.0)
        elif self._catch_up is not None:
            self.lead(*self._planned)
        if self._blending:
            self._blend()

    def follow(self, position_rad: float, velocity_rad_s: float, torque_nm: float) -> None:
        """Do the same where somebody else has the motion."""
        led_from = self._led_from
        if led_from is None or (position_rad, velocity_rad_s, torque_nm) != led_from[0]:
            self._lead_back()
            self.lead(position_rad, velocity_rad_s, torque_nm)
        if self._blending:
            self._blend()

    def skip(self, periods: int, missed: int, *, is_slow: bool) -> None:
        """Go on after a pause of so many periods, of which some count for the motion.

        A loop that is slow all the time keeps to the clock.
        """
        if self._motion is not None:
            self._k += periods
            # What was going to be sent is row k - 1.
            position_rad, velocity_rad_s, torque_nm = self._motion.row(self._k - 1)
            self.resume((position_rad, velocity_rad_s, torque_nm), missed, is_slow=is_slow)
        elif self._catch_up is not None:
            self.resume(self._planned, missed, is_slow=is_slow)
        elif self._blending and self.mode not in _FOLLOWING:
            self._resend(missed)

    def resume(self, planned: Reference, missed: int, *, is_slow: bool) -> None:
        """Lead it on after a pause, from where its board has the reference now."""
        self._lead_back()
        if is_slow or self._is_little(planned, missed):
            # To begin anew in every cycle would leave it no time to catch up.
            self._lead(planned, missed)
            return
        self._resend(missed)
        self._planned = planned
        self._catch_up = CatchUp(
            self.axis,
            self.reference,
            planned,
            sway_s=self.overshoot_rad_s(1.0),
            period_s=self._period_s,
        )
        if self._catch_up.is_over and not self._lost:
            self._catch_up = None
            self.lead(*planned)

    def _is_little(self, planned: Reference, missed: int) -> bool:
        """Whether a step to where a constant speed is by now takes so little current.

        On a board that holds its reference every period that is left out is one.
        """
        if self.axis.behaviour.is_reference_advanced or missed > _LITTLE_PERIODS:
            return False
        per_joint, law = abs(self.axis.motor_per_joint), self._law
        step_a = law.kp_a_per_rad * per_joint * abs(planned[0] - self.reference[0])
        step_a += law.kd_a_s_per_rad * per_joint * abs(planned[1] - self.reference[1])
        return step_a < _LITTLE_SHARE * self.axis.current_max_a

    def _resend(self, missed: int) -> None:
        """Send what its board makes of the last command by now, so that nothing changes."""
        position_rad, velocity_rad_s, torque_nm = self.reference
        if self.axis.behaviour.is_reference_advanced:
            position_rad += velocity_rad_s * self._period_s * missed
        elif velocity_rad_s:
            # A reference that stood still has braked the joint.
            self._before_a, self._lost = self.axis.iq_mean_a, _JUST_NOW
        self.axis.refer(position_rad, velocity_rad_s)
        self.reference = position_rad, velocity_rad_s, torque_nm

    def _find_again(self, periods: int) -> Reference:
        """Return a reference at the joint, which one that stood still has braked.

        Its speed is the joint's, and its place is such that the current goes from what its board
        drives now back to what it drove before the pause.
        """
        law, axis = self._law, self.axis
        position_rad, velocity_rad_s, torque_nm = self.reference
        here_rad, here_rad_s = axis.position_rad, axis.velocity_rad_s
        if not law.kp_a_per_rad:
            self._lost = 0
            return here_rad, here_rad_s, torque_nm
        per_rad_a = law.kp_a_per_rad * axis.motor_per_joint
        given_a = law.iq_ff_a + torque_nm * axis.amperes_per_nm
        if self._lost == _JUST_NOW:
            lacking_rad_s = (velocity_rad_s - here_rad_s) * axis.motor_per_joint
            driven_a = given_a + per_rad_a * (position_rad - here_rad)
            driven_a += law.kd_a_s_per_rad * lacking_rad_s
            beside_a = min(max(driven_a, -axis.isat_a), axis.isat_a) - self._before_a
            self._lost = math.ceil(abs(beside_a) / (_FOUND_A_PER_S * self._period_s)) + 1
            self._beside_a = beside_a / self._lost
        self._lost = max(0, self._lost - periods)
        wanted_a = self._before_a + self._lost * self._beside_a
        return here_rad + (wanted_a - given_a) / per_rad_a, here_rad_s, torque_nm

    def lead(self, position_rad: float, velocity_rad_s: float, torque_nm: float) -> None:
        """Write a reference."""
        self._lead((position_rad, velocity_rad_s, torque_nm), 1)

    def _lead(self, planned: Reference, periods: int) -> None:
        """Write a reference that comes so much later than the last one."""
        self._planned = position_rad, velocity_rad_s, torque_nm = planned
        if self._catch_up is not None and self._lost:
            position_rad, velocity_rad_s, torque_nm = self._find_again(periods)
            self._catch_up.restart(position_rad, velocity_rad_s, planned)
        elif self._catch_up is not None:
            position_rad, velocity_rad_s, torque_nm = self._catch_up.step(planned, periods)
            if self._catch_up.is_over:
                self._catch_up = None
        axis = self.axis
        axis.refer(position_rad, velocity_rad_s)
        has_torque = torque_nm or self.reference[2]
        self.reference = position_rad, velocity_rad_s, torque_nm
        if has_torque:
            self._feed()

    def mind(self, elapsed_s: float) -> bool:
        """Keep up with what its board does by itself; called now and then.

        While Ki = 0 nobody knows what becomes of the integral, and with it a joint that stands
        still shall not be wound up.

        Returns:
            Whether it does not move although it must.
        """
        if self.follows and self.is_led and abs(self.axis.velocity_rad_s) >= CARRIED_RAD_S:
            self.axis.is_carried = True
        is_wound_up = bool(self._law.ki_a_per_rad_s)
        if is_wound_up:
            self._idle_integral.note_use()
        else:
            self._idle_integral.follow(elapsed_s, is_led=self.is_led or self._blending > 0)
        is_led_on = self._motion is not None or self._catch_up is not None or self.reference[1]
        if is_led_on or not is_wound_up:
            self._standing.begin()
            return False
        if self._blending:
            return False
        standing = self._standing.look(elapsed_s, self._law.kd_a_s_per_rad)
        if standing in (Standing.SETTLES, Standing.IS_ASKED):
            change_a = self._standing.wanted_a - self.axis.iq_mean_a
            led_from = self.reference, self._law.iq_ff_a
            self._take_up_sag()
            self._slew(replace(self._law, iq_ff_a=self._law.iq_ff_a + change_a))
            if standing is Standing.IS_ASKED or self.mode in _LED_BY_OTHERS:
                self._led_from = led_from
        elif standing is Standing.ANSWERS:
            self._lead_back()
        return standing is Standing.IS_DEAD

    def _lead_back(self) -> None:
        """Lead it where it was led before, from the current that it has now."""
        if self._led_from is None:
            return
        (reference, iq_ff_a), self._led_from = self._led_from, None
        law, axis = self._law, self.axis
        law.iq_ff_a += law.kp_a_per_rad * axis.error_rad
        self.lead(*reference)
        law.iq_ff_a -= law.kp_a_per_rad * axis.error_rad
        self._feed()
        self._slew(replace(law, iq_ff_a=iq_ff_a))

    def _absorb_torque(self) -> None:
        """Let the law slew away the torque of a motion that ends."""
        position_rad, velocity_rad_s, torque_nm = self.reference
        self._law.iq_ff_a += torque_nm * self.axis.amperes_per_nm
        self.reference = position_rad, velocity_rad_s, 0.0

    def _change_gains(self, gains: Gains, *, is_moving: bool = False) -> None:
        """Slew to other gains, and leave the joint the current that holds it."""
        ki = self._ki(gains)
        if ki > self._law.ki_a_per_rad_s and not self._may_raise(ki):
            ki = self._law.ki_a_per_rad_s
        limit_a, handover = self.axis.current_max_a, self._handover
        carried_a = handover.free_a()
        if self.is_led:
            carried_a = handover.carried_a(gains, ki, is_moving=is_moving)
        carried_a = min(max(carried_a, -limit_a), limit_a)
        self._slew(Law(gains.kp_a_per_rad, gains.kd_a_s_per_rad, ki, carried_a))

    def _ki(self, gains: Gains) -> float:
        return gains.ki_a_per_rad_s if self.axis.has_integrator else 0.0

    def _may_raise(self, ki: float) -> bool:
        """Whether Ki may rise: the integral belongs to the Ki that it was made with."""
        if not self._law.ki_a_per_rad_s:
            return self._idle_integral.is_small(ki)
        return self._handover.may_grow(ki)

    @property
    def _handover(self) -> Handover:
        return Handover(self.axis, self._law, self.reference, self._period_s)

    def _slew(self, goal: Law) -> None:
        law, share = self._law, 1.0 / self._blend_cycles
        self._goal = goal
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
        self.axis.obey(law)
        if self.reference[2] or self._extra_a:
            self._feed()

    def _feed(self) -> None:
        torque_a = self.reference[2] * self.axis.amperes_per_nm
        self.axis.feed(self._law.iq_ff_a + torque_a + self._extra_a)
