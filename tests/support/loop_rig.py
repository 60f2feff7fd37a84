"""The whole loop on the mock robot in virtual time, with every byte on the wire at hand."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import msgspec
import numpy as np
import pytest

from daq.boards.board import Board
from daq.loop.io.axis import Axis
from daq.loop.runner import Runner
from daq.loop.safety.machine import Machine
from daq.loop.setup import PERIOD_NS, make_loop, make_session
from daq.loop.tracks.track import Track
from daq.recording.states import Mode, State
from daq.robot import load_robot, robot_text
from daq.robot.description import Robot
from daq.samples.batches import Event, Header, decode_header
from daq.stream import messages as m
from daq.stream.errors import RefusedError
from firmware_protocol import profile_named
from firmware_protocol.codec import command_codec, reply_codec
from firmware_protocol.profile import Profile
from firmware_protocol.profiles import MODE_BITS
from hw_mocks.clock import VirtualClock
from hw_mocks.faults.script import FaultScript, parse_fault
from hw_mocks.mock_link import MockLink, mock_links
from hw_mocks.mock_robot import MockRobot
from hw_mocks.plants.effects import PRESETS, Effects

ES = MODE_BITS["ES"]
GAINS = ("kp_a_per_rad", "kd_a_s_per_rad", "ki_a_per_rad_s")
Tamper = Callable[[bytes], bytes]


class TappedLink:
    """A link that remembers all frames, and may change what comes back.

    The same frame again, as when a board is brought in step, is not remembered: one per cycle.
    """

    def __init__(self, inner: MockLink) -> None:
        self._inner = inner
        self.name, self.framing, self.clock_hz = inner.name, inner.framing, inner.clock_hz
        self.sent: list[bytes] = []
        self.received: list[bytes] = []
        self.tamper: Tamper | None = None

    @property
    def resynchronised(self) -> int:
        return self._inner.resynchronised

    def exchange(self, frame: bytes) -> bytes:
        if self.sent and frame == self.sent[-1]:
            return self._inner.exchange(frame)
        self.sent.append(frame)
        self.received.append(b"")
        received = self._inner.exchange(frame)
        if self.tamper is not None:
            received = self.tamper(received)
        self.received[-1] = received
        return received

    def realign(self, missing: int) -> None:
        self._inner.realign(missing)

    def close(self) -> None:
        self._inner.close()


_read = functools.cache(load_robot)


class Rig:
    """A loop, its mock robot, and what went between them.

    A mock robot that was used before goes on, with its clock. Without a calibration time boards
    take theirs, and begin late.

    Attributes:
        events: Every event, as the batches carried it; `flush` brings the latest.
        batches: Header and payload of every batch.
        iq_a: The mock's true currents, per joint, after every cycle.
        joint_rad: The mock's true joint angles, after every cycle.
        measured_a: The currents of the last usable replies, per joint, after every cycle.
    """

    def __init__(
        self,
        robot: str | Robot = "bench1",
        *,
        faults: Sequence[str] = (),
        profile: str | None = None,
        calibration_s: float | Literal["quick"] | None = "quick",
        effects: Effects = PRESETS["default"],
        posture_rad: tuple[float, ...] | None = None,
        is_armed: bool = True,
        clock: VirtualClock | None = None,
        seed: int = 0,
        mock: MockRobot | None = None,
    ) -> None:
        name = robot if isinstance(robot, str) else robot.name
        self.robot = _read(robot) if isinstance(robot, str) else robot
        self.clock = clock or VirtualClock()
        if calibration_s == "quick":
            # A whole arm does not follow the field faster than that.
            calibration_s = 0.1 if len(self.robot.joints) == 1 else 0.3
        self.mock = mock or MockRobot(
            self.robot,
            profile=profile,
            calibration_s=calibration_s,
            effects=effects,
            posture_rad=posture_rad,
            seed=seed,
        )
        self.script = FaultScript([parse_fault(text) for text in faults])
        self.links = [TappedLink(link) for link in mock_links(self.mock, self.clock, self.script)]
        self.profiles = [profile_named(profile or port.profile) for port in self.robot.boards]
        self.boards = [
            Board(
                port.name,
                chosen,
                link,
                now_ns=self.clock.now_ns,
                command_timeout_ms=port.command_timeout_ms,
            )
            for port, chosen, link in zip(self.robot.boards, self.profiles, self.links, strict=True)
        ]
        made = make_session(
            robot_text(name),
            name,
            self.boards,
            link="mock",
            version="0",
            start_t_ns=0,
            start_utc_ns=0,
            is_virtual=True,
        )
        # One name for all, so that two rigs can be compared.
        self.session = msgspec.structs.replace(made, session="virtual")
        self._decoded: list[list[Any]] = [[] for _ in self.links]
        self.batches: list[tuple[Header, bytes]] = []
        self.events: list[Event] = []
        self.loop = make_loop(
            self.robot,
            self.boards,
            self.session,
            [lambda header, payload: self.batches.append((decode_header(header), payload))],
            now_ns=self.clock.now_ns,
            utc_ns=self.clock.now_ns,
            listener=self.events.extend,
            profile=profile,
            is_armed=is_armed,
        )
        self.cycle = self.loop.cycle
        self.tracks: list[Track] = self.cycle.control.tracks
        self.axes: list[Axis] = [track.axis for track in self.tracks]
        self.iq_a: list[tuple[float, ...]] = []
        self.joint_rad: list[tuple[float, ...]] = []
        self.measured_a: list[tuple[float, ...]] = []
        outputs = {
            output.connection.joint_index: output
            for board in self.mock.boards
            for output in board.outputs
            if output.connection is not None
        }
        self.outputs = [outputs[number] for number in range(len(self.robot.joints))]

    # --- short names ------------------------------------------------------------------------------

    @property
    def machine(self) -> Machine:
        return self.cycle.machine

    @property
    def state(self) -> State:
        return self.cycle.machine.state

    @property
    def now(self) -> int:
        """Cycles so far: the number of the next one."""
        return self.cycle.seq

    # --- going on ---------------------------------------------------------------------------------

    def step(self, cycles: int = 1) -> None:
        for _ in range(cycles):
            deadline_ns = self.clock.now_ns() + PERIOD_NS
            self.clock.sleep_until_ns(deadline_ns)
            self.cycle.run(deadline_ns, self.clock.now_ns(), 0)
            self.iq_a.append(tuple(output.iq_a for output in self.outputs))
            self.joint_rad.append(tuple(self.mock.plant.joint_position_rad))
            self.measured_a.append(tuple(axis.iq_a for axis in self.axes))

    def until(self, is_so: Callable[[], bool], *, cycles: int = 20_000) -> int:
        """Go on until something is so; how many cycles that took."""
        for count in range(cycles):
            if is_so():
                return count
            self.step()
        raise AssertionError(f"not so within {cycles} cycles: {self.machine.reason}")

    def send(self, command: m.AnyCommand, payload: bytes = b"") -> Any:
        return self.loop.handler(command, payload)

    def mode(self, mode: str, *target: float, joints: Sequence[str] = (), duration_s: float = 0.0):
        return self.send(
            m.SetMode(mode=mode, target=target, joints=tuple(joints), duration_s=duration_s)
        )

    def upload(self, rows: np.ndarray, *, has_torque: bool = False) -> Rig:
        """A trajectory: q, dq and perhaps torque of all joints, ready to be started."""
        self.send(m.PlayBegin(rows=len(rows), has_torque=has_torque))
        for first in range(0, len(rows), 300):
            self.send(m.PlayRows(first=first), rows[first : first + 300].tobytes())
        return self

    def enable(self) -> Rig:
        self.step(3)
        self.send(m.Enable())
        self.until(lambda: self.state is not State.CALIBRATING)
        assert self.state is State.READY, self.machine.reason
        return self

    def hold(self, cycles: int = 200) -> Rig:
        self.mode("hold")
        self.step(cycles)
        return self

    def home_by_truth(self) -> Rig:
        """What homing would find, without the time that it takes."""
        for axis, output in zip(self.axes, self.outputs, strict=True):
            axis.set_home(output.encoder.origin_rad + zero_at_index(axis))
        return self

    def runner(self, **options: Any) -> Runner:
        return Runner(self.cycle, self.clock, period_ns=PERIOD_NS, **options)

    # --- what was on the wire ---------------------------------------------------------------------

    def commands(self, board: int = 0, first: int = 0, last: int | None = None) -> list[Any]:
        """The commands on a board's wire, from one cycle to before another."""
        codec, decoded = command_codec(self.profiles[board]), self._decoded[board]
        decoded += map(codec.decode, self.links[board].sent[len(decoded) :])
        return decoded[first:last]

    def wire(self, joint: int, name: str, first: int = 0, last: int | None = None) -> np.ndarray:
        """One value of the commands to a joint's motor, over time, as the wire carried it."""
        board, motor = self.place_of(joint)
        return np.array(
            [getattr(command, name)[motor] for command in self.commands(board, first, last)]
        )

    def replies(self, board: int = 0) -> list[Any]:
        """The replies of a board in each cycle; None where there was nothing sound."""
        codec = reply_codec(self.profiles[board])
        return [
            codec.decode(frame) if codec.is_sound(frame) else None
            for frame in self.links[board].received
        ]

    def place_of(self, joint: int) -> tuple[int, int]:
        """Number of a joint's board, and of its motor there, from 0."""
        drive = self.robot.joints[joint].drive
        names = [port.name for port in self.robot.boards]
        return names.index(drive.board), drive.output - 1

    def events_of(self, kind: str | None = None) -> list[Event]:
        known = [*self.events, *self.cycle.events._pending]
        return [event for event in known if kind is None or event.kind == kind]

    def event_texts(self, kind: str | None = None) -> list[str]:
        return [event.text for event in self.events_of(kind)]


def zero_at_index(axis: Axis) -> float:
    """The plant counts motor angles from the joint's offset: that much is to be added."""
    return axis.joint.drive.joint_offset_rad * axis.motor_per_joint


@contextmanager
def refused_for(code: str, reason: str, *values: str) -> Iterator[None]:
    """Expect that a command is refused, with names and numbers in its message."""
    with pytest.raises(RefusedError) as refusal:
        yield
    assert (refusal.value.code, refusal.value.reason) == (code, reason)
    for value in values:
        assert value in refusal.value.message


# --- tampering with replies -----------------------------------------------------------------------


def with_values(profile: Profile, motor: int | None = None, **values: float) -> Tamper:
    """Replies whose values are changed, of one motor (from 0) or of the board; the CRC is right."""
    codec = reply_codec(profile)

    def tamper(frame: bytes) -> bytes:
        reply = codec.decode(frame)
        changes: dict[str, Any] = dict(values)
        if motor is not None:
            for name, value in values.items():
                pair = list(getattr(reply, name))
                pair[motor] = value
                changes[name] = tuple(pair)
        return codec.encode_saturating(reply._replace(**changes))[0]

    return tamper


def corrupt(frame: bytes) -> bytes:
    return frame[:5] + bytes([frame[5] ^ 1]) + frame[6:]


def cut_short(frame: bytes) -> bytes:
    return frame[:-4]


def silent(frame: bytes) -> bytes:
    return bytes(len(frame))


def of_other_version(profile: Profile) -> Tamper:
    codec = reply_codec(profile)

    def tamper(frame: bytes) -> bytes:
        raws = list(codec.decode_raw(frame))
        raws[0] ^= 1 << 4
        return codec.encode_raw(raws)

    return tamper


def for_cycles(count: int, tamper: Tamper) -> Tamper:
    """Only the next so many replies."""
    left = count

    def limited(frame: bytes) -> bytes:
        nonlocal left
        left -= 1
        return tamper(frame) if left >= 0 else frame

    return limited


def changed_joint(robot: Robot, number: int, **parts: dict[str, Any]) -> Robot:
    """A robot one of whose joints differs: `drive={"direction": -1}`."""
    joints = list(robot.joints)
    joint = joints[number]
    for part, values in parts.items():
        changed = msgspec.structs.replace(getattr(joint, part), **values)
        joint = msgspec.structs.replace(joint, **{part: changed})
    joints[number] = joint
    return msgspec.structs.replace(robot, joints=tuple(joints))


# --- judging --------------------------------------------------------------------------------------


def assert_safe_stop(rig: Rig, tripped: int, *, ramp_cycles: int = 50) -> None:
    """A safe stop on every board, decided in a cycle: zero gains, a ramp to zero, ES off in time.

    Args:
        rig: After the stop.
        tripped: Number of the cycle that decided it.
        ramp_cycles: How long it takes.
    """
    offs = []
    for board in range(len(rig.boards)):
        commands = rig.commands(board)
        powered = [number for number, command in enumerate(commands) if command.mode & ES]
        offs.append(powered[-1] + 1)
        assert all((command.timeout_ms > 0) is bool(command.mode & ES) for command in commands)
        for command in commands[tripped + 1 :]:
            for name in GAINS:
                assert getattr(command, name, (0.0, 0.0)) == (0.0, 0.0)
    assert len(set(offs)) == 1, f"boards were switched off at different times: {offs}"
    assert offs[0] - tripped == ramp_cycles
    for joint in range(len(rig.robot.joints)):
        assert_ramp(rig, joint, tripped, offs[0])


def assert_ramp(rig: Rig, joint: int, tripped: int, off: int) -> None:
    ramp = rig.wire(joint, "iq_ff_a", tripped + 1)
    limit_a = rig.axes[joint].current_max_a
    # A board after the one that tripped begins before it has been asked in this cycle.
    measured = [
        max(-limit_a, min(limit_a, currents[joint]))
        for currents in rig.measured_a[max(0, tripped - 1) : tripped + 1]
    ]
    lsb = 2.0**-10
    assert any(0.95 * abs(iq) - lsb <= abs(ramp[0]) <= abs(iq) + lsb for iq in measured)
    assert ramp[0] == 0.0 or any(math.copysign(1.0, ramp[0]) * iq > 0 for iq in measured)
    assert (np.diff(np.abs(ramp)) <= 0).all()
    assert (ramp * ramp[0] >= 0).all()
    assert (ramp[off - tripped - 1 :] == 0.0).all()


__all__ = [
    "ES",
    "GAINS",
    "Mode",
    "Rig",
    "TappedLink",
    "assert_safe_stop",
    "changed_joint",
    "corrupt",
    "cut_short",
    "for_cycles",
    "of_other_version",
    "refused_for",
    "silent",
    "with_values",
]
