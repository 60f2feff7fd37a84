"""The whole loop on the mock robot in virtual time, with every byte on the wire at hand."""

from __future__ import annotations

import errno
import functools
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import msgspec
import numpy as np
import pytest

from daq.boards.board import Board
from daq.control.torque_model import load_torque_model
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
REST_CYCLES = 300
REST_RAD = 0.0015
"""So long a joint must have been so near to one place before its board is switched off."""
KD_NOISE = 2e-5
"""Two steps of the wire."""
Tamper = Callable[[bytes], bytes]


class TappedLink:
    """A link that remembers all frames, and may change what comes back.

    The same frame again, as when a board is brought in step, is not remembered: one per cycle.
    Once it is gone, nothing reaches the board any more.
    """

    def __init__(self, inner: MockLink) -> None:
        self._inner = inner
        self.name, self.framing, self.clock_hz = inner.name, inner.framing, inner.clock_hz
        self.sent: list[bytes] = []
        self.received: list[bytes] = []
        self.tamper: Tamper | None = None
        self.is_gone = False

    @property
    def resynchronised(self) -> int:
        return self._inner.resynchronised

    def exchange(self, frame: bytes) -> bytes:
        if self.sent and frame == self.sent[-1]:
            return self._inner.exchange(frame)
        self.sent.append(frame)
        self.received.append(b"")
        if self.is_gone:
            raise OSError(errno.EIO, os.strerror(errno.EIO), self.name)
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
        has_model: bool = True,
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
            model=load_torque_model(self.robot) if has_model else None,
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

    def end_stop(self) -> int:
        """Go on until a stop is over, and the boards have been told so; the cycles it took."""
        longest_s = self.robot.safety.stop_max_s + self.robot.safety.lower_max_s
        took = self.until(
            lambda: self.state is not State.STOPPING, cycles=round(1000 * longest_s) + 10
        )
        self.step(3)
        return took

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


def with_friction(robot: Robot, factor: float) -> Robot:
    """A robot whose joints all rub so many times as much."""
    for number, joint in enumerate(robot.joints):
        law = msgspec.structs.asdict(joint.drive.friction)
        friction = type(joint.drive.friction)(**{name: factor * law[name] for name in law})
        robot = changed_joint(robot, number, drive={"friction": friction})
    return robot


def with_payload(robot: Robot, mass_kg: float, *, at_m: tuple[float, float, float]) -> Robot:
    """A robot with a point mass on its last link, in that joint's frame."""
    number = len(robot.joints) - 1
    link, (x, y, z) = robot.joints[number].link, at_m
    inertia = msgspec.structs.replace(
        link.inertia_kg_m2,
        xx=link.inertia_kg_m2.xx + mass_kg * (y * y + z * z),
        yy=link.inertia_kg_m2.yy + mass_kg * (x * x + z * z),
        zz=link.inertia_kg_m2.zz + mass_kg * (x * x + y * y),
        xy=link.inertia_kg_m2.xy - mass_kg * x * y,
        xz=link.inertia_kg_m2.xz - mass_kg * x * z,
        yz=link.inertia_kg_m2.yz - mass_kg * y * z,
    )
    moment_kg_m = tuple(
        before + mass_kg * arm_m for before, arm_m in zip(link.first_moment_kg_m, at_m, strict=True)
    )
    changes = {"mass_kg": link.mass_kg + mass_kg, "first_moment_kg_m": moment_kg_m}
    return changed_joint(robot, number, link={**changes, "inertia_kg_m2": inertia})


# --- judging --------------------------------------------------------------------------------------


LATE_CYCLES = 150
"""A stop does not go on for longer after joints have come to rest, as far as counts show it."""
BUILD_UP_CYCLES = 10
FOLLOW_CYCLES = 20
"""Kd follows the inertia no more often."""


def assert_safe_stop(
    rig: Rig,
    tripped: int,
    *,
    let_go: Mapping[int, int] | None = None,
    free: Collection[int] = (),
    lost: Collection[int] = (),
    longest_s: float | None = None,
) -> int:
    """A safe stop on every board, decided in a cycle: all brake, rest, and are off together.

    Args:
        rig: After the stop.
        tripped: Number of the cycle that decided it.
        let_go: Boards that are switched off before the others, and the cycles of their first
            commands without ES.
        lost: Boards that cannot be reached: their joints may still move.
        free: Joints whose motors get no current, as their encoders are not believed.
        longest_s: How long it may take; as long as the robot file allows if not given.

    Returns:
        Number of the cycle whose command was the first without ES.
    """
    offs = dict(enumerate(assert_off_once(rig)))
    for board, off in (let_go or {}).items():
        assert offs.pop(board) == off, f"board {board} was let go too early or too late"
    assert len(set(offs.values())) == 1, f"boards were switched off at different times: {offs}"
    (off,) = set(offs.values())
    if longest_s is None:
        longest_s = rig.robot.safety.stop_max_s + rig.robot.safety.lower_max_s
    assert REST_CYCLES <= off - tripped <= 1000 * longest_s + 3
    for joint in range(len(rig.robot.joints)):
        board, _ = rig.place_of(joint)
        last = off if let_go is None else let_go.get(board, off)
        assert_braked(
            rig,
            joint,
            tripped,
            tripped + 1 if joint in free else last,
            off=last,
            is_posture_known=not let_go,
        )
    if len(rig.joint_rad) == rig.now and off - tripped < 1000 * longest_s:
        held = [joint for joint in range(len(rig.axes)) if rig.place_of(joint)[0] in offs]
        _assert_at_rest(rig, [n for n in held if rig.place_of(n)[0] not in lost], off)
        if not let_go and not lost and off - tripped > REST_CYCLES + LATE_CYCLES:
            true_rad = np.array(rig.joint_rad)[off - REST_CYCLES - LATE_CYCLES : off]
            assert (np.ptp(true_rad, axis=0) > 0.5 * REST_RAD).any(), "all had rested for longer"
    return off


def _assert_at_rest(rig: Rig, joints: Sequence[int], off: int) -> None:
    true_rad = np.array(rig.joint_rad)[off - REST_CYCLES : off]
    for joint in joints:
        assert np.ptp(true_rad[:, joint]) <= 2.5 * REST_RAD, f"joint {joint} still moved"


def assert_off_at_once(rig: Rig, decided: int) -> None:
    """The next command after a cycle has neither ES nor current, on every board."""
    assert set(assert_off_once(rig)) == {decided + 1}
    for joint in range(len(rig.robot.joints)):
        assert_braked(rig, joint, decided, decided + 1, off=decided + 1)


def assert_off_once(rig: Rig) -> list[int]:
    """A time-out just while ES is on; the first commands of each board after its last with ES."""
    offs = []
    for board in range(len(rig.boards)):
        commands = rig.commands(board)
        powered = [number for number, command in enumerate(commands) if command.mode & ES]
        offs.append(powered[-1] + 1)
        assert all((command.timeout_ms > 0) is bool(command.mode & ES) for command in commands)
        assert not any(command.mode for command in commands[offs[-1] :])
    return offs


def assert_braked(
    rig: Rig, joint: int, decided: int, last: int, *, off: int, is_posture_known: bool = True
) -> None:
    """A joint's board was told nothing but to brake since a cycle, with all it may, until another.

    Args:
        rig: After the stop.
        joint: Number of the joint.
        decided: Number of the cycle that decided it.
        last: Of the first command that does not brake any more.
        off: Of the first without ES.
        is_posture_known: Whether it stays so; Kd drops to what suits every posture otherwise.
    """
    first = decided + 1
    board, _ = rig.place_of(joint)
    for name in ("kp_a_per_rad", "ki_a_per_rad_s", "iq_ff_a", "motor_velocity_rad_s"):
        if hasattr(rig.commands(board)[0], name):
            assert (rig.wire(joint, name, first) == 0.0).all(), f"{name} of joint {joint}"
    assert all(command.mode & ES for command in rig.commands(board, first, off))
    kd = rig.wire(joint, "kd_a_s_per_rad", first)
    assert (kd[last - first :] == 0.0).all()
    kd = kd[: last - first]
    if not len(kd):
        return
    highest_a = rig.axes[joint].current_max_a
    isat_a = rig.wire(joint, "isat_a", first, last)
    assert ((highest_a - 0.125 < isat_a) & (isat_a <= highest_a)).all()
    growing = kd[:BUILD_UP_CYCLES]
    shares = (np.arange(len(growing)) + 1.5) / BUILD_UP_CYCLES
    if rig.axes[joint].behaviour.current_sum_max_a is not None:
        assert (kd > 0.0).all()  # less the faster it turns, so that the law does not overflow
        assert (growing <= kd.max() * shares + KD_NOISE).all()
        return
    assert kd[0] > 0.0
    assert (np.diff(growing) >= 0.0).all()
    if len(kd) < BUILD_UP_CYCLES:
        return
    full = growing[-1]
    assert (growing <= full * shares + KD_NOISE).all()
    # Then it only follows the inertia, which changes slowly, if at all.
    braking = kd[BUILD_UP_CYCLES - 1 :]
    changes = np.flatnonzero(np.diff(braking))
    assert (np.diff(changes) >= FOLLOW_CYCLES).all()
    jumps = np.abs(np.diff(braking)) > 0.1 * full
    assert jumps.sum() <= (not is_posture_known)
    assert (braking >= 0.1 * full).all()


__all__ = [
    "ES",
    "GAINS",
    "Mode",
    "Rig",
    "TappedLink",
    "assert_braked",
    "assert_off_at_once",
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
