"""Homing: which turn of the motor the encoder's index belongs to, and a gentle search for it.

The encoder sits on the motor and its index comes once per motor turn, so after power-up a joint's
angle is known up to multiples of 2π/gear_reduction: `joint_offset_rad` of the robot file is the
angle at one of these places. A hint of the joint's posture picks the right one. Pure computation:
the loop feeds `IndexSearch` with what the boards measure and sends what it answers.

EIxOC (index-offset compensation on the board) is never used: it makes the reported position jump
when the index is found, and with it the position error and the arm. Here positions run on, and the
offset is added on this side of the wire.

The index is taken where the flags change between two replies, in the middle of the two positions:
right to half of what the motor turns in a cycle, 1 mrad at 2 rad/s. Which edge of a pulse a board
reports is not known; a pulse is one count wide.
"""

from __future__ import annotations

import math

from daq.motion.errors import HomingError
from daq.motion.moves import Motion, Row, SpeedChange
from daq.robot.description import DrivenJoint

HINT_MAX = 0.35
"""How far a hint may be off, in distances between two possible zeros; half would be a guess."""
TRAVEL_TURNS = 1.25
SPEED_RAD_S = 2.0
RAMP_S = 0.3
BRACKET_MAX_RAD = 0.05
"""Motor travel between two valid replies around the index; more (lost replies) is too vague."""
_FOLLOWED_MIN = 0.5


def locate_zero(
    joint: DrivenJoint, *, index_motor_rad: float, start_motor_rad: float, hint_rad: float
) -> float:
    """Return a joint's motor offset, from its index and a hint.

    Joint angle = direction · (motor position + motor offset) / gear reduction.

    Args:
        joint: Its gear, direction, offset and limits.
        index_motor_rad: Motor position at the index, as on the wire, unwrapped.
        start_motor_rad: Motor position when the search began, where the hint holds.
        hint_rad: About where the joint was then.

    Raises:
        HomingError: The hint lies between two possible postures, or the joint outside its limits.
    """
    drive, limits = joint.drive, joint.limits
    if not math.isfinite(hint_rad):
        raise HomingError(joint.name, f"a hint of {hint_rad} rad; give a number", code="not-finite")
    spacing = math.tau / drive.gear_reduction
    travelled = (index_motor_rad - start_motor_rad) / joint.motor_per_joint
    turns = (hint_rad + travelled - drive.joint_offset_rad) / spacing
    turn = math.floor(turns + 0.5)
    index_rad = drive.joint_offset_rad + turn * spacing
    start_rad = index_rad - travelled
    error_rad = hint_rad - start_rad
    if not abs(error_rad) <= HINT_MAX * spacing:
        other_rad = start_rad + math.copysign(spacing, error_rad)
        raise HomingError(
            joint.name,
            f"it stood at {start_rad:.4f} or at {other_rad:.4f} rad, and the hint of"
            f" {hint_rad:.4f} rad is {abs(error_rad):.4f} rad from the nearer one, limit"
            f" {HINT_MAX * spacing:.4f} rad; give a better hint of its posture, or move the arm to"
            " its home posture by hand",
            code="ambiguous-hint",
        )
    if not limits.position_min_rad <= start_rad <= limits.position_max_rad:
        raise HomingError(
            joint.name,
            f"it would stand at {start_rad:.4f} rad, outside its limits {limits.position_min_rad:g}"
            f" to {limits.position_max_rad:g} rad; check the hint and joint_offset_rad",
            code="position-limit",
        )
    return joint.motor_per_joint * index_rad - index_motor_rad


class Travel:
    """A way at a constant speed with smooth ends, of one axis (any unit).

    Speed rises and falls as 3s² - 2s³; a way too short for the speed is done more slowly.

    Args:
        way: How far it goes, signed.
        speed: How fast at most.
        ramp_s: Time in which it reaches that speed.
    """

    def __init__(
        self, start: float, way: float, *, speed: float, ramp_s: float, period_s: float
    ) -> None:
        self._start, self._end = start, start + way
        self._ramp_s, self._period_s = ramp_s, period_s
        self._speed = math.copysign(min(speed, abs(way) / ramp_s), way)
        self._duration_s = way / self._speed + ramp_s if way else 0.0
        self.cycles = math.ceil(self._duration_s / period_s)

    def row(self, k: int) -> Row:
        """Return position and speed in cycle k."""
        if k >= self.cycles:
            return self._end, 0.0
        t = k * self._period_s
        left = self._duration_s - t
        ramp_s, speed = self._ramp_s, self._speed
        if t < ramp_s:
            s = t / ramp_s
            way = speed * ramp_s * s * s * s * (1.0 - 0.5 * s)
            return self._start + way, speed * s * s * (3.0 - 2.0 * s)
        if left < ramp_s:
            s = left / ramp_s
            way = speed * ramp_s * s * s * s * (1.0 - 0.5 * s)
            return self._end - way, speed * s * s * (3.0 - 2.0 * s)
        return self._start + speed * (t - 0.5 * ramp_s), speed


class IndexSearch:
    """Turns one motor gently until its index passes, then back to where it began.

    One way up to `TRAVEL_TURNS`, then as far the other way, then it gives up.

    Args:
        start_motor_rad: Reference in force, or where the motor stands when there is none: the
            search begins there, so that nothing jumps.
        hint_rad: About where the joint is, to turn where there is room.
        speed_rad_s: How fast the motor turns.

    Attributes:
        index_motor_rad: Motor position at the index, once found.
        start_motor_rad: Where the motor was measured at the start.
        failure: Why it was not found, once the motor is back.
        is_done: Whether the motor is back where it began.

    Raises:
        HomingError: There is no room to turn either way.
    """

    def __init__(
        self,
        joint: DrivenJoint,
        *,
        start_motor_rad: float,
        hint_rad: float,
        period_s: float = 1e-3,
        speed_rad_s: float = SPEED_RAD_S,
    ) -> None:
        self._joint = joint
        self._period_s = period_s
        self._speed_rad_s = speed_rad_s
        self._origin_rad = start_motor_rad
        self._ways = _ways(joint, hint_rad)
        self._reference = (start_motor_rad, 0.0)
        self._before: tuple[float, bool, bool] | None = None
        self._lowest_rad, self._highest_rad = math.inf, -math.inf
        self._is_returning = False
        self.index_motor_rad: float | None = None
        self.start_motor_rad = start_motor_rad
        self.failure: HomingError | None = None
        self.is_done = False
        self._go_to(start_motor_rad + self._ways.pop(0) * TRAVEL_TURNS * math.tau)

    def step(
        self, motor_rad: float, is_index_found: bool, index_toggle: bool, is_valid: bool
    ) -> tuple[float, float]:
        """Do one cycle.

        Args:
            motor_rad: Motor position of the last reply, unwrapped.
            is_index_found: IDXxD of the same reply.
            index_toggle: IDXxT of the same reply.
            is_valid: Whether there was a valid reply; the others do not count otherwise.

        Returns:
            Motor position and speed to command.
        """
        if is_valid:
            self._look(motor_rad, is_index_found, index_toggle)
        if not self.is_done:
            self._cycle += 1
            position_rad, speed_rad_s, *_ = self._path.row(self._cycle)
            self._reference = position_rad, speed_rad_s
            if self._cycle >= (self._path.cycles or 0):
                self._arrive()
        return self._reference

    def _look(self, motor_rad: float, is_found: bool, toggle: bool) -> None:
        before, self._before = self._before, (motor_rad, is_found, toggle)
        if before is None:
            self.start_motor_rad = motor_rad
            return
        self._lowest_rad = min(self._lowest_rad, motor_rad)
        self._highest_rad = max(self._highest_rad, motor_rad)
        if self.index_motor_rad is not None:
            return
        before_rad, was_found, old_toggle = before
        # If it was found earlier, only the toggle shows that it passes again.
        if toggle == old_toggle and (was_found or not is_found):
            return
        if abs(motor_rad - before_rad) <= BRACKET_MAX_RAD:
            self.index_motor_rad = 0.5 * (before_rad + motor_rad)
            if not self._is_returning:
                self._ways.clear()
                here, speed = self._reference
                self._follow(
                    SpeedChange([here], [speed], [0.0], ramp_s=[RAMP_S], period_s=self._period_s)
                )

    def _go_to(self, target_rad: float) -> None:
        here_rad = self._reference[0]
        self._follow(
            Travel(
                here_rad,
                target_rad - here_rad,
                speed=self._speed_rad_s,
                ramp_s=RAMP_S,
                period_s=self._period_s,
            )
        )

    def _follow(self, path: Motion) -> None:
        self._path, self._cycle = path, 0

    def _arrive(self) -> None:
        """Go the other way at the end of a path, or back, or be done."""
        if self._ways:
            self._go_to(self._origin_rad + self._ways.pop(0) * TRAVEL_TURNS * math.tau)
        elif not self._is_returning:
            self._is_returning = True
            self._go_to(self._origin_rad)
        else:
            self.is_done = True
            self._reference = (self._origin_rad, 0.0)
            if self.index_motor_rad is None:
                self.failure = self._why()

    def _why(self) -> HomingError:
        travelled_turns = max(0.0, self._highest_rad - self._lowest_rad) / math.tau
        if travelled_turns < _FOLLOWED_MIN * TRAVEL_TURNS:
            return HomingError(
                self._joint.name,
                f"the motor turned by {travelled_turns:.2f} turns instead of {TRAVEL_TURNS}: it is"
                " blocked or too weakly controlled",
                code="blocked",
            )
        return HomingError(
            self._joint.name,
            f"no encoder index was seen in {travelled_turns:.2f} motor turns; check the encoder's"
            " index wire",
            code="no-index",
        )


def _ways(joint: DrivenJoint, hint_rad: float) -> list[int]:
    """Return which ways the motor may turn, forward first unless only the other way has room."""
    drive, limits = joint.drive, joint.limits
    # The hint may be off, too.
    needed_rad = (TRAVEL_TURNS + HINT_MAX) * math.tau / drive.gear_reduction
    rooms_rad = {
        drive.direction: limits.position_max_rad - hint_rad,
        -drive.direction: hint_rad - limits.position_min_rad,
    }
    ways = [way for way in (1, -1) if rooms_rad[way] >= needed_rad]
    if not ways:
        raise HomingError(
            joint.name,
            f"at {hint_rad:.4g} rad it has no room to turn by {needed_rad:.4g} rad either way"
            f" inside its limits {limits.position_min_rad:g} to {limits.position_max_rad:g} rad",
            code="no-room",
        )
    return ways
