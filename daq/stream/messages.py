"""Commands to the loop and its answers: JSON, one typed message each way.

A request is `{"command": "enable", "id": 7, …}`, its answer `{"id": 7, "ok": true, "result": …}` or
`{"id": 7, "ok": false, "error": {"code": …, "message": …}}`. Unknown commands and fields are
refused. What takes time (enable, home, play) is answered when it has begun; the status shows how it
goes on. Values are joint side and SI, currents and gains at the motor.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from daq.motion.playback import ROWS_MAX

REQUEST_MAX = 16 << 10
"""Bytes of a request; larger ones are refused."""
Text = Annotated[str, Meta(max_length=200)]
JointNames = Annotated[tuple[Annotated[str, Meta(max_length=40)], ...], Meta(max_length=32)]
PerJoint = Annotated[tuple[float, ...], Meta(max_length=32)]


class Command(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="command",
    tag=lambda name: "".join(f"-{c.lower()}" if c.isupper() else c for c in name).lstrip("-"),
    forbid_unknown_fields=True,
):
    """Base of all commands.

    Attributes:
        id: Comes back in the answer.
        expires_ns: Not to be carried out after this moment of the robot computer's monotonic
            clock; 0 to leave that to the gateway.
    """

    id: Annotated[int, Meta(ge=0, lt=1 << 53)] = 0
    expires_ns: Annotated[int, Meta(ge=0, lt=1 << 62)] = 0


class Status(Command, frozen=True, kw_only=True):
    """Ask for the status; answered with a `LoopStatus`."""


class Enable(Command, frozen=True, kw_only=True):
    """Idle → calibrating → ready. Rotors move back and forth."""


class Disable(Command, frozen=True, kw_only=True):
    """Bring every joint smoothly to rest, then the safe stop; ends in idle. From any state."""


class Stop(Command, frozen=True, kw_only=True):
    """The safe stop, now, from any state."""


class Reset(Command, frozen=True, kw_only=True):
    """Fault → idle."""


class SetMode(Command, frozen=True, kw_only=True):
    """Change what joints do. Needs ready or active.

    Attributes:
        mode: off, hold, position, velocity, current or torque.
        joints: Which; none means all.
        target: One value per joint in the mode's unit (rad, rad/s, A, N·m); none for off and hold.
        duration_s: How long a move to a position takes; 0 for as long as half the speed
            limit takes.
    """

    mode: Annotated[str, Meta(max_length=20)]
    joints: JointNames = ()
    target: PerJoint = ()
    duration_s: Annotated[float, Meta(ge=0, le=600)] = 0.0


class SetGains(Command, frozen=True, kw_only=True):
    """Change gains of the position law (kp, kd, ki) at the motor; they slew, no step in torque.

    Attributes:
        joints: Which; none means all.
        kp_a_per_rad: One value per joint; none to leave it.
        kd_a_s_per_rad: Likewise.
        ki_a_per_rad_s: Likewise; refused where the board has no integrator.
    """

    joints: JointNames = ()
    kp_a_per_rad: PerJoint = ()
    kd_a_s_per_rad: PerJoint = ()
    ki_a_per_rad_s: PerJoint = ()


class Home(Command, frozen=True, kw_only=True):
    """Find every joint's encoder index gently, and from it and a hint the joint's zero.

    Attributes:
        posture_rad: About where the joints are now; none for the robot file's home posture.
    """

    posture_rad: PerJoint = ()


class PlayBegin(Command, frozen=True, kw_only=True):
    """Announce a trajectory at the loop's rate; its rows follow in `PlayRows`.

    Attributes:
        rows: How many samples.
        has_torque: Whether rows carry a feed-forward torque.
    """

    rows: Annotated[int, Meta(ge=2, le=ROWS_MAX)]
    has_torque: bool = False


class PlayRows(Command, frozen=True, kw_only=True):
    """Some rows of the announced trajectory; the second part of the message holds them.

    Each row is little-endian doubles: q of all joints, dq of all joints, torque of all joints if
    announced. Rows come in order and are checked against every limit as they come.
    """

    first: Annotated[int, Meta(ge=0, le=ROWS_MAX)]


class PlayStart(Command, frozen=True, kw_only=True):
    """Move smoothly from the present posture to the first row, then play. Needs homing."""


class PlayStop(Command, frozen=True, kw_only=True):
    """Leave the trajectory smoothly and hold."""


class RecordStart(Command, frozen=True, kw_only=True):
    """Begin a recording with the next sample.

    Attributes:
        name: File name without directory and suffix, which `daq.stream.requests` checks; empty to
            let the recorder choose.
    """

    name: str = ""


class RecordStop(Command, frozen=True, kw_only=True):
    """End the recording."""


class RecordMark(Command, frozen=True, kw_only=True):
    """Put a remark among the events of the recording."""

    text: Annotated[str, Meta(min_length=1, max_length=200)]


class RecorderReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the recorder says of itself, twice a second.

    Attributes:
        state: `idle`, `recording` or `waiting` (it cannot write; see `problem`).
        file: Where the recording goes, or went.
        session: The loop's run that it follows.
        next_seq: The sample it expects next.
        written: Samples safe on disk in this recording.
        missing: Samples that could not be had any more.
        pending: Recordings that are still being turned into HDF5.
        free_bytes: Room on the disk.
        problem: What is wrong and what to do, empty when nothing is.
    """

    state: Annotated[str, Meta(max_length=20)]
    file: Annotated[str, Meta(max_length=2000)] = ""
    session: Annotated[str, Meta(max_length=100)] = ""
    next_seq: int = 0
    written: int = 0
    missing: int = 0
    pending: int = 0
    free_bytes: int = 0
    problem: Annotated[str, Meta(max_length=1000)] = ""


class Report(Command, frozen=True, kw_only=True):
    """The recorder's report to the loop."""

    report: RecorderReport


AnyCommand = (
    Status
    | Enable
    | Disable
    | Stop
    | Reset
    | SetMode
    | SetGains
    | Home
    | PlayBegin
    | PlayRows
    | PlayStart
    | PlayStop
    | RecordStart
    | RecordStop
    | RecordMark
    | Report
)


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why a command was not carried out; nothing has changed.

    Attributes:
        code: For programs: `malformed`, `oversized`, `unknown`, `out-of-limit`, `not-now`,
            `not-homed`, `failed`; from the gateway also `no-answer` (the loop is silent),
            `too-late` and `too-many` (requests are waiting).
        message: For people: what, value and limit, what to do.
    """

    code: str
    message: str


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a command."""

    id: int
    ok: bool
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: Refusal | None = None


class JointStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A joint as it is now; None where nothing is known."""

    name: str
    mode: str
    is_homed: bool
    position_rad: float | None
    velocity_rad_s: float | None
    torque_nm: float | None
    iq_a: float | None
    winding_temperature_degc: float | None


class BoardStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A board as it is now."""

    name: str
    device: str
    profile: str
    outcome: str
    fault: str
    bus_voltage_v: float | None
    counters: dict[str, int]


class Quantiles(msgspec.Struct, frozen=True, kw_only=True):
    """A distribution of times, in microseconds."""

    p50: float
    p99: float
    p999: float
    max: float


class LoopStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to `Status`."""

    state: str
    reason: str
    """Why it is in this state, for example what stopped it."""
    is_fault_of_board: bool = False
    """Whether it is in a fault that was a board's, its device's or its link's."""
    session: str
    robot: str
    link: str
    is_mock: bool = False
    """Whether it was proved that no real motor can move."""
    is_virtual: bool
    uptime_s: float
    seq: int
    cycles: int
    skipped: int
    lost: int
    """Exchanges without an answer, commands lost and late ones."""
    corrupt: int
    publish_dropped: int
    wake_us: Quantiles
    work_us: Quantiles
    is_at_rest: bool
    """Whether every joint's reference stands still."""
    trajectories: int
    """How many were played to their end."""
    joints: tuple[JointStatus, ...]
    boards: tuple[BoardStatus, ...]
    recording: str
    """Name of the recording that is on, empty for none."""
    recorder: RecorderReport | None
    recorder_age_s: float | None
    """Since the recorder's last report; None when there never was one."""
    privileges: tuple[str, ...]
    """What the loop could not get: scheduling, locked memory, a core."""
    events: tuple[str, ...]
    """The latest, oldest first, with their times since the start."""
