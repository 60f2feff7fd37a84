"""One joint as the loop sees it: integers on its board's wire, SI values at the joint.

Everything that does not change from cycle to cycle is worked out once; what remains per cycle is a
handful of multiplications and comparisons. It notices that a limit is exceeded; what that means
decides `daq.loop.safety.monitor`. Knows no modes (`daq.loop.tracks.control`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from daq.boards.wire_range import WireRange
from daq.robot import DrivenJoint
from firmware_protocol.behaviour import Behaviour
from firmware_protocol.codec import FrameCodec
from firmware_protocol.fields import Field
from firmware_protocol.values import CommandValues, ReplyValues

NEVER = 1 << 62
"""A limit that no integer on the wire reaches."""
_CURRENT_MARGIN = 1.05
_CURRENT_MARGIN_A = 0.25
"""Measured currents are noisy, and Isat comes in eighths of an ampere."""
SPEED_NEAR = 0.95
"""Of the highest speed: from there on a joint is looked at more closely."""
SPEED_AHEAD = 8.0
"""Cycles: so late is what is measured of a joint that is pushed, and what answers it."""
_FOLLOWING_SHARE = 2.0
"""A joint whose error asks for this much of Isat does not follow: the motor gives all it has."""
_MEAN_SHARE = 0.125
_ROUNDING_RAD = 1e-4
"""At the motor, of a reference that is led to its very end."""


@dataclass(slots=True)
class Law:
    """Gains and feed-forward of a board's control law for one motor, at the motor."""

    kp_a_per_rad: float = 0.0
    kd_a_s_per_rad: float = 0.0
    ki_a_per_rad_s: float = 0.0
    iq_ff_a: float = 0.0


class Axis:
    """A joint on one output of a board.

    Positions on the wire wrap; here they run on, also over a gap in the replies: of all positions
    that the wire may mean, the one nearest to where the motor was going is taken.

    References never wrap while the law has Kp or Ki: one beyond the wire's fence takes both away in
    the same command, and whatever was planned wrongly ends in a motor without stiffness instead of
    one that runs away.

    Args:
        nm_per_a: Torque at the joint per current of its motor, with its sign.
        wire: How far its motor may be led.
        command_raws: The integers of the board's next command; this axis writes its own.

    Attributes:
        position_rad: Joint angle, as last read; from where the joint was switched on until homed.
        velocity_rad_s: At the joint.
        iq_a: At the motor, with its sign.
        iq_mean_a: The same, averaged over the last few milliseconds.
        motor_offset_rad: Joint angle = direction · (position on the wire + this) / gear reduction.
        is_homed: Whether positions are the joint's own.
        is_fenced: Whether Kp and Ki were taken away at the wire's fence; the reader clears it.
        rollovers: How often its position has wrapped on the wire.
        current_max_a: What may be commanded.
        isat_a: What the board lets through, in the wire's steps.
        enabled_at_rad: Where the joint stood when it was ready: it is jogged about that.
        low_rad: The position's lower limit; none until homed.
        high_rad: The upper one.
        speed_max_rad_s: The velocity's limit.
        speed_near_rad_s: From here on, or shortly before, somebody looks closer.
        ahead_s: So also where the joint would be beyond a limit after this time.
        slow_rad_s: Counts that stop at once are natural below this speed, and looked at above.
        push_low_a: A current that is so much below that of the last motion is looked at,
        push_high_a: or so much above it.
        has_moved: Whether the last reply had more counts than the one before, half as many at least
            as by its speed.
        iq_moved_a: The current when the last count came,
        velocity_moved_rad_s: the speed,
        velocity_earlier_rad_s: and that of the reply before it.
        is_carried: Whether its motor has been leading it: then that current tells what hangs on it.
        inertia_max_kg_m2: The most that it turns in any posture.
        velocity_before_rad_s: Of the reply before the last.
        current_alarm_a: A current that the board should not have let through.
        hottest_raw: The winding temperature's limit, as on the wire.
        coldest_raw: Less than this is no temperature, once a sensor has been seen.
        has_integrator: Whether the board knows Ki.
        gains_max: The highest gains that the wire carries, by name.
        behaviour: Of its board.
    """

    __slots__ = (
        "_a_per_raw",
        "_error_max_raw",
        "_fence_raw",
        "_ff_at",
        "_ff_lsb",
        "_half_raw",
        "_half_way_raw",
        "_iq_at",
        "_isat_at",
        "_isat_lsb",
        "_kd_at",
        "_kd_lsb",
        "_ki_at",
        "_ki_lsb",
        "_kp_at",
        "_kp_lsb",
        "_last_raw",
        "_lsb_rad",
        "_offset_rad",
        "_position_at",
        "_rad_per_raw",
        "_rad_s_per_raw",
        "_raws",
        "_reference_at",
        "_span_raw",
        "_speed_at",
        "_speed_max_raw",
        "_speed_per_cycle",
        "_temperature",
        "_temperature_at",
        "_velocity_at",
        "ahead_s",
        "amperes_per_nm",
        "behaviour",
        "coldest_raw",
        "current_alarm_a",
        "current_max_a",
        "enabled_at_rad",
        "following_max_rad",
        "gains_max",
        "has_integrator",
        "has_moved",
        "high_rad",
        "hottest_raw",
        "inertia_max_kg_m2",
        "iq_a",
        "iq_mean_a",
        "iq_moved_a",
        "is_carried",
        "is_fenced",
        "is_homed",
        "isat_a",
        "joint",
        "low_rad",
        "motor_offset_rad",
        "motor_per_joint",
        "nm_per_a",
        "number",
        "position_rad",
        "push_high_a",
        "push_low_a",
        "rollovers",
        "slow_rad_s",
        "speed_max_rad_s",
        "speed_near_rad_s",
        "velocity_before_rad_s",
        "velocity_earlier_rad_s",
        "velocity_moved_rad_s",
        "velocity_rad_s",
        "wire",
    )

    def __init__(
        self,
        number: int,
        joint: DrivenJoint,
        *,
        nm_per_a: float,
        command: FrameCodec[CommandValues],
        reply: FrameCodec[ReplyValues],
        behaviour: Behaviour,
        wire: WireRange,
        command_raws: list[int],
        period_s: float,
    ) -> None:
        output = joint.drive.output
        self.number = number
        self.joint = joint
        self.motor_per_joint = joint.motor_per_joint
        self.nm_per_a = nm_per_a
        self.amperes_per_nm = 1.0 / self.nm_per_a
        self._raws = command_raws
        self._position_at, self._lsb_rad = _place_and_lsb(reply, "motor_position_rad", output)
        self._velocity_at, velocity_lsb = _place_and_lsb(reply, "motor_velocity_rad_s", output)
        self._iq_at, self._a_per_raw = _place_and_lsb(reply, "iq_a", output)
        temperature_at = reply.place_of("winding_temperature_degc", output)
        # Without a sensor another integer is compared, with a limit that none reaches.
        self._temperature_at, self.hottest_raw = 0, NEVER
        self._temperature: Field | None = None
        if temperature_at is not None:
            self._temperature = field = _field(reply, "winding_temperature_degc")
            self._temperature_at = temperature_at
            allowed = (joint.limits.winding_temperature_max_degc - field.offset) / field.lsb
            self.hottest_raw = math.floor(allowed)
        self._rad_per_raw = self._lsb_rad / self.motor_per_joint
        self._rad_s_per_raw = velocity_lsb / self.motor_per_joint
        self._speed_per_cycle = velocity_lsb * period_s / self._lsb_rad
        self._half_way_raw = 0.5 * period_s / self._rad_per_raw
        self.behaviour = behaviour
        self.wire = wire
        self._half_raw = round(wire.wrap_rad / self._lsb_rad)
        self._span_raw = 2 * self._half_raw
        self._fence_raw = int(wire.fence_rad / self._lsb_rad)

        self._reference_at = _place(command, "motor_position_rad", output)
        self._speed_at = _place(command, "motor_velocity_rad_s", output)
        self._speed_max_raw = _field(command, "motor_velocity_rad_s").raw_maximum
        self._kp_at, self._kp_lsb = _place_and_lsb(command, "kp_a_per_rad", output)
        self._kd_at, self._kd_lsb = _place_and_lsb(command, "kd_a_s_per_rad", output)
        self._ff_at, self._ff_lsb = _place_and_lsb(command, "iq_ff_a", output)
        ki_at = command.place_of("ki_a_per_rad_s", output)
        self.has_integrator = ki_at is not None
        self._ki_at = -1 if ki_at is None else ki_at
        self._ki_lsb = 1.0 if ki_at is None else _field(command, "ki_a_per_rad_s").lsb
        self.gains_max = dict.fromkeys(("kp_a_per_rad", "kd_a_s_per_rad", "ki_a_per_rad_s"), 0.0)
        for field in command.layout.fields:
            if field.name in self.gains_max:
                self.gains_max[field.name] = field.raw_maximum * field.lsb
        self.current_max_a = min(
            joint.limits.current_max_a,
            joint.limits.torque_max_nm / abs(nm_per_a),
            behaviour.current_max_a or math.inf,
        )
        self._isat_at, self._isat_lsb = _place_and_lsb(command, "isat_a", output)
        self.limit_current(self.current_max_a)
        self.current_alarm_a = self.current_max_a * _CURRENT_MARGIN + _CURRENT_MARGIN_A
        self.speed_max_rad_s = joint.limits.velocity_max_rad_s
        self._last_raw = self.rollovers = 0
        self.enabled_at_rad = 0.0
        self.inertia_max_kg_m2 = joint.drive.joint_inertia_kg_m2
        self._begin_watching()
        self.forget_home()

    def _begin_watching(self) -> None:
        """Set what is noticed, until others set it: nothing but the limits."""
        self.velocity_rad_s = self.velocity_before_rad_s = self.iq_a = self.iq_mean_a = 0.0
        self.has_moved, self.iq_moved_a = False, 0.0
        self.velocity_moved_rad_s = self.velocity_earlier_rad_s = 0.0
        self.speed_near_rad_s = SPEED_NEAR * self.speed_max_rad_s
        self.ahead_s = 0.0
        self.slow_rad_s, self.push_low_a, self.push_high_a = math.inf, -math.inf, math.inf
        self.following_max_rad = math.inf
        self._error_max_raw: float = NEVER
        self.coldest_raw = 0

    # --- reading ----------------------------------------------------------------------------------

    def read(self, raws: tuple[int, ...]) -> bool:
        """Take in the joint's part of a reply.

        Returns:
            Whether there is nothing to notice: it is within all limits and near none of them, moves
            if it should, and `motor_offset_rad` is what it was.
        """
        raw, last_raw = raws[self._position_at], self._last_raw
        is_wrapped = not -self._half_raw < raw - last_raw < self._half_raw
        if is_wrapped:
            self._unwrap(raw - last_raw)
        self._last_raw = raw
        self.position_rad = position_rad = raw * self._rad_per_raw + self._offset_rad
        self.velocity_before_rad_s = before_rad_s = self.velocity_rad_s
        self.has_moved = has_moved = abs(raw - last_raw) > abs(before_rad_s * self._half_way_raw)
        self.velocity_rad_s = velocity_rad_s = raws[self._velocity_at] * self._rad_s_per_raw
        self.iq_a = iq_a = raws[self._iq_at] * self._a_per_raw
        self.iq_mean_a += _MEAN_SHARE * (iq_a - self.iq_mean_a)
        if has_moved:
            self.iq_moved_a = self.iq_mean_a
            self.velocity_moved_rad_s, self.velocity_earlier_rad_s = velocity_rad_s, before_rad_s
        return (
            self.low_rad <= position_rad <= self.high_rad
            and self.low_rad <= position_rad + self.ahead_s * velocity_rad_s <= self.high_rad
            and -self.speed_near_rad_s
            <= velocity_rad_s + SPEED_AHEAD * (velocity_rad_s - before_rad_s)
            <= self.speed_near_rad_s
            and -self.current_alarm_a <= iq_a <= self.current_alarm_a
            and self.coldest_raw <= raws[self._temperature_at] <= self.hottest_raw
            and -self._error_max_raw <= self._raws[self._reference_at] - raw <= self._error_max_raw
            and not is_wrapped
            and (
                has_moved
                or (
                    -self.slow_rad_s <= before_rad_s <= self.slow_rad_s
                    and self.push_low_a <= iq_a - self.iq_moved_a <= self.push_high_a
                )
            )
        )

    def bridge(self, raws: tuple[int, ...], missed: int) -> None:
        """Take in the first reply after `missed` cycles without one."""
        speed_raw = raws[self._velocity_at] * self._speed_per_cycle
        travelled_raw = round(speed_raw * (missed + 1))
        surprise_raw = raws[self._position_at] - self._last_raw - travelled_raw
        if abs(surprise_raw) >= self._half_raw:
            self._unwrap(surprise_raw)
        moved_raw = raws[self._position_at] - self._last_raw
        moved_raw -= round(surprise_raw / self._span_raw) * self._span_raw
        before_rad_s = self.velocity_rad_s
        self._last_raw = raws[self._position_at]
        self.read(raws)
        if abs(moved_raw) > abs(before_rad_s * self._half_way_raw):
            # As many counts as in one cycle at least: more may be asked of it when it is heard.
            self.has_moved, self.iq_moved_a = True, self.iq_mean_a
            self.velocity_moved_rad_s = self.velocity_earlier_rad_s = self.velocity_rad_s

    def expect_sensor(self, raws: tuple[int, ...]) -> None:
        """Note whether a reply has a temperature: from then on its absence is noticed."""
        field = self._temperature
        if field is not None and raws[self._temperature_at] != field.absent_raw:
            self.coldest_raw = (field.absent_raw or 0) + 1

    def forget_sensor(self) -> None:
        """Expect no temperature until one has been seen again."""
        self.coldest_raw = 0

    def temperature_degc(self, raws: tuple[int, ...]) -> float:
        """Return the winding's temperature; NaN where there is no sensor."""
        field, raw = self._temperature, raws[self._temperature_at]
        if field is None or raw == field.absent_raw:
            return math.nan
        return raw * field.lsb + field.offset

    @property
    def motor_position_rad(self) -> float:
        """At the motor, running on over as many turns as it makes; zero where the joint's is."""
        return self.position_rad * self.motor_per_joint

    def _unwrap(self, step_raw: int) -> None:
        self.rollovers += 1
        self._slacken()  # the board takes the reference to be a whole range away now
        turns = -round(step_raw / self._span_raw)
        self._place(self.motor_offset_rad + turns * self._span_raw * self._lsb_rad)

    # --- zero -------------------------------------------------------------------------------------

    def set_home(self, motor_offset_rad: float) -> None:
        """Take the joint's zero: from now on positions are its own."""
        self.is_homed = True
        self._place(motor_offset_rad)
        self._limit_position()

    def forget_home(self) -> None:
        """Forget the zero: positions count from where the encoder was calibrated.

        On the bench that is the zero.
        """
        self.is_homed = self.joint.is_on_bench
        self.is_fenced = self.is_carried = False
        zero_rad = self.joint.drive.joint_offset_rad if self.is_homed else 0.0
        self._place(zero_rad * self.motor_per_joint)
        self._limit_position()

    def _limit_position(self) -> None:
        """Set the position limits, which hold once the zero is known."""
        limits = self.joint.limits
        self.low_rad = limits.position_min_rad if self.is_homed else -math.inf
        self.high_rad = limits.position_max_rad if self.is_homed else math.inf

    def _place(self, motor_offset_rad: float) -> None:
        self.motor_offset_rad = motor_offset_rad
        self._offset_rad = motor_offset_rad / self.motor_per_joint
        self.position_rad = self._last_raw * self._rad_per_raw + self._offset_rad

    # --- commanding -------------------------------------------------------------------------------

    @property
    def reach_rad(self) -> tuple[float, float]:
        """How far down and up motions may be planned, joint side: short of where the wire wraps."""
        return self._at_joint(self.wire.reach_rad)

    @property
    def fence_rad(self) -> tuple[float, float]:
        """How far down and up the joint may be led at all, rounding included."""
        return self._at_joint(self.wire.fence_rad - _ROUNDING_RAD)

    def _at_joint(self, motor_rad: float) -> tuple[float, float]:
        half_rad = motor_rad / abs(self.motor_per_joint)
        return self._offset_rad - half_rad, self._offset_rad + half_rad

    def refer(self, position_rad: float, velocity_rad_s: float) -> None:
        """Write the reference of the next command, joint side."""
        raw = round((position_rad - self._offset_rad) / self._rad_per_raw)
        if not -self._fence_raw <= raw <= self._fence_raw:
            self._slacken()
            raw = (raw + self._half_raw) % self._span_raw - self._half_raw
        self._raws[self._reference_at] = raw
        speed_raw = round(velocity_rad_s / self._rad_s_per_raw)
        highest = self._speed_max_raw
        self._raws[self._speed_at] = (
            speed_raw
            if -highest <= speed_raw <= highest
            else (highest if speed_raw > 0 else -highest)
        )

    def obey(self, law: Law) -> None:
        """Write the gains and the feed-forward of the next command, whose reference is written."""
        raws = self._raws
        raws[self._kp_at] = round(law.kp_a_per_rad / self._kp_lsb)
        raws[self._kd_at] = round(law.kd_a_s_per_rad / self._kd_lsb)
        if self.has_integrator:
            raws[self._ki_at] = round(law.ki_a_per_rad_s / self._ki_lsb)
        if not -self._fence_raw <= raws[self._reference_at] <= self._fence_raw:
            self._slacken()
        self._error_max_raw = NEVER
        if law.kp_a_per_rad or law.kd_a_s_per_rad or law.ki_a_per_rad_s:
            most_rad = self.following_max_rad * abs(self.motor_per_joint)
            if law.kp_a_per_rad:
                # Not the present Isat, which heat may lower.
                most_rad = min(most_rad, _FOLLOWING_SHARE * self.current_max_a / law.kp_a_per_rad)
            self._error_max_raw = most_rad / self._lsb_rad
        self.feed(law.iq_ff_a)

    def _slacken(self) -> None:
        """Take Kp and Ki away at once, if there are any."""
        raws = self._raws
        if raws[self._kp_at]:
            raws[self._kp_at], self.is_fenced = 0, True
        if self.has_integrator and raws[self._ki_at]:
            raws[self._ki_at], self.is_fenced = 0, True

    @property
    def error_max_rad(self) -> float:
        """How far the reference may be from the joint while it stands, by its present gains."""
        return self._error_max_raw * abs(self._rad_per_raw)

    @property
    def error_rad(self) -> float:
        """How far the reference on the wire is from the motor, as its board takes it."""
        return (self._raws[self._reference_at] - self._last_raw) * self._lsb_rad

    def limit_current(self, current_a: float) -> None:
        """Write Isat of the next command: never more than what may be commanded."""
        # Rounded down, and never to 0, which would mean the board's own limit.
        isat_raw = max(1, int(min(current_a, self.current_max_a) / self._isat_lsb))
        self._raws[self._isat_at] = isat_raw
        self.isat_a = isat_raw * self._isat_lsb

    def feed(self, iq_ff_a: float) -> None:
        """Write the feed-forward current of the next command, at the motor, within the limit."""
        limit_a = self.current_max_a
        clamped_a = min(max(iq_ff_a, -limit_a), limit_a)
        self._raws[self._ff_at] = round(clamped_a / self._ff_lsb)


def _place(codec: FrameCodec[Any], name: str, motor: int) -> int:
    place = codec.place_of(name, motor)
    if place is None:
        raise ValueError(f"every profile's {codec.layout.direction.value} has {name}")
    return place


def _field(codec: FrameCodec[Any], name: str) -> Field:
    return next(field for field in codec.layout.fields if field.name == name)


def _place_and_lsb(codec: FrameCodec[Any], name: str, motor: int) -> tuple[int, float]:
    return _place(codec, name, motor), _field(codec, name).lsb
