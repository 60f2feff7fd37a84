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
HOLDER_NAME_MAX = 120
LeaseToken = Annotated[str, Meta(pattern=r"^[0-9A-Za-z_-]{0,64}\Z")]
JointNames = Annotated[tuple[Annotated[str, Meta(max_length=40)], ...], Meta(max_length=32)]
PerJoint = Annotated[tuple[float, ...], Meta(max_length=32)]


class Command(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="command",
    tag=lambda name: "".join(f"-{c.lower()}" if c.isupper() else c for c in name).lstrip("-"),
    forbid_unknown_fields=True,
    # A loop of an older version refuses fields that it does not know, even in a stop.
    omit_defaults=True,
):
    """Base of all commands.

    Attributes:
        id: Comes back in the answer.
        expires_ns: Not to be carried out after this moment of the robot computer's monotonic
            clock; 0 to leave that to the gateway.
        lease: Token of the lease that the client holds; empty for none, which is enough while
            nobody holds it. See `TakeLease`.
    """

    id: Annotated[int, Meta(ge=0, lt=1 << 53)] = 0
    expires_ns: Annotated[int, Meta(ge=0, lt=1 << 62)] = 0
    lease: LeaseToken = ""


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


class TakeLease(Command, frozen=True, kw_only=True):
    """Become the only one who commands, under a token of one's own choice that nobody can guess.

    Lapses when it is not renewed for 2 s. Commands without its token are refused meanwhile (code
    `held`), except those that anybody may give: status, stop, disable and marks.

    Attributes:
        name: Who that is, for people: printable, `daq.stream.requests` checks it.
        takes_over: Take it from whoever holds it. Who held it is told by their next refusal.
    """

    name: Annotated[str, Meta(min_length=1, max_length=HOLDER_NAME_MAX)]
    takes_over: bool = False


class RenewLease(Command, frozen=True, kw_only=True):
    """Keep the lease for another 2 s; commands under its token do that, too."""


class ReleaseLease(Command, frozen=True, kw_only=True):
    """Give the lease back."""


class SetMode(Command, frozen=True, kw_only=True):
    """Change what joints do. Needs ready or active.

    Attributes:
        mode: off, hold, position, velocity, current or torque.
        joints: Which; none means all.
        target: One value per joint in the mode's unit (rad, rad/s, A, N·m); none for off and hold.
        duration_s: How long a move to a position takes; 0 for as long as half the speed
            limit takes.
        ends_with_lease: Come to hold when the lease ends under which this is asked for, however it
            ends: lapsed, given back or taken over.
    """

    mode: Annotated[str, Meta(max_length=20)]
    joints: JointNames = ()
    target: PerJoint = ()
    duration_s: Annotated[float, Meta(ge=0, le=600)] = 0.0
    ends_with_lease: bool = False


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
    """Move smoothly from the present posture to the first row, then play. Needs homing.

    Attributes:
        ends_with_lease: As in `SetMode`.
    """

    ends_with_lease: bool = False


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
        fault_file: Where it has saved a fault the last time, empty before.
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
    fault_file: Annotated[str, Meta(max_length=2000)] = ""


class Report(Command, frozen=True, kw_only=True):
    """The recorder's report to the loop."""

    report: RecorderReport


AnyCommand = (
    Status
    | Enable
    | Disable
    | Stop
    | Reset
    | TakeLease
    | RenewLease
    | ReleaseLease
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


class LeaseHolder(msgspec.Struct, frozen=True, kw_only=True):
    """Who commands, and since when: Unix time, and how long ago that was."""

    name: str
    since_utc_ns: int
    held_s: float


class Refusal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a command was not carried out; nothing has changed.

    Attributes:
        code: For programs: `malformed`, `oversized`, `unknown`, `out-of-limit`, `not-now`,
            `not-homed`, `held` (somebody else commands), `lease-lost` (ours was taken over or has
            lapsed), `failed`; from the gateway also `no-answer` (the loop is silent), `too-late`
            and `too-many` (requests are waiting).
        message: For people: what, value and limit, what to do.
        held_by: With the codes `held` and `lease-lost`, who commands now; None for nobody.
    """

    code: str
    message: str
    held_by: LeaseHolder | None = None


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
    current_max_a: float | None = None
    """What its motor may have now: less than the robot file allows before homing, and near its
    temperature limit."""


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
    trip_code: str = ""
    """What stopped it the last time, in a word; empty before."""
    pause_ms: int = 0
    """How long the computer had paused just before that; 0 if it had not."""
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
    held_by: LeaseHolder | None = None
    """Who commands; None for nobody, so that anybody may."""
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
