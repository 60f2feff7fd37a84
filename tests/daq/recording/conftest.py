"""Samples as the loop makes them: real frames of mock boards, in virtual time."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recording_maker import make_recording
from sessions import START_T_NS, make_session

from daq.boards.board import Board
from daq.recording import RecordingWriter
from daq.samples.batches import Session
from daq.samples.columns import ColumnDecoder, behaviour_of
from firmware_protocol.profiles import profile_named
from hw_mocks.clock import VirtualClock
from hw_mocks.faults.script import FaultScript
from hw_mocks.mock_link import MockLink, mock_links
from hw_mocks.mock_robot import MockRobot

Array = np.ndarray[Any, np.dtype[Any]]
PERIOD_NS = 1_000_000
_ENABLED = 0xE0


class _Overheard:
    """A link that keeps the last command."""

    def __init__(self, link: MockLink) -> None:
        self._link = link
        self.name, self.framing, self.resynchronised = link.name, link.framing, 0
        self.clock_hz = link.clock_hz
        self.realign, self.close = link.realign, link.close
        self.command = b""

    def exchange(self, frame: bytes) -> bytes:
        self.command = frame
        return self._link.exchange(frame)


def _run_mock(
    session: Session, count: int, *, script: FaultScript | None = None, calibration_s: float = 0.3
) -> Array:
    """Samples of a robot whose joints follow sines, with the timing of a real loop."""
    decoder = ColumnDecoder(session)
    robot, clock, layout = decoder.robot, VirtualClock(), decoder.layout
    mock = MockRobot(robot, calibration_s=calibration_s)
    links = [_Overheard(link) for link in mock_links(mock, clock, script)]
    boards = [
        Board(info.name, profile_named(info.profile), link, now_ns=clock.now_ns)
        for info, link in zip(session.boards, links, strict=True)
    ]
    random = np.random.default_rng(1)
    noise_ns = random.gamma(2.0, 6000.0, (count, 3)).astype(np.int64)
    joints = len(robot.joints)
    joint_part = layout.pack_joints([0.0] * joints, [2] * joints, [True] * joints)
    sweep = int((calibration_s + 0.2) * 1000)
    homes: list[tuple[float, float]] = [(0.0, 0.0)] * len(boards)
    packed = []
    for number in range(count):
        is_moving = number >= sweep
        seconds = (number - sweep) * 1e-3
        parts = []
        for place, (board, link) in enumerate(zip(boards, links, strict=True)):
            angle, speed = (3.0, 0.5 + 0.2 * place)
            phase = math.tau * speed * seconds
            swing, rate = angle * math.sin(phase), angle * math.tau * speed * math.cos(phase)
            command = board.command(mode=_ENABLED)
            if is_moving:
                one, two = homes[place]
                command = command._replace(
                    motor_position_rad=(one + swing, two - swing),
                    motor_velocity_rad_s=(rate, -rate),
                    kp_a_per_rad=(0.5, 0.5),
                    kd_a_s_per_rad=(0.01, 0.01),
                    isat_a=(8.0, 8.0),
                )
            reading = board.exchange(command, is_real_time=True)
            if not is_moving and reading.values:
                homes[place] = reading.values.motor_position_rad
            reply = reading.frame.ljust(layout.frame_sizes[place], b"\0")
            parts += [bytes([reading.outcome]), link.command, reply]
        wake, transfer, work = noise_ns[number].tolist()
        timing = layout.pack_timing(
            number, START_T_NS + number * PERIOD_NS + wake, wake, 90_000 + transfer, work, 0, 3
        )
        packed.append(b"".join((timing, joint_part, *parts)))
        clock.advance_ns(PERIOD_NS)
    return layout.view(b"".join(packed)).copy()


def _write(path: Path, decoder: ColumnDecoder, samples: Array, *, block: int = 5000) -> Path:
    writer = RecordingWriter(path, decoder.recording_info("test"))
    for start in range(0, len(samples), block):
        part = samples[start : start + block]
        writer.append(decoder.decode(part))
        writer.add_invalid_frames(*decoder.invalid_frames(part))
    writer.close()
    return path


@pytest.fixture(scope="session")
def run_mock() -> Callable[..., Array]:
    return _run_mock


@pytest.fixture(scope="session")
def write() -> Callable[..., Path]:
    """Writes samples into a recording."""
    return _write


@pytest.fixture(scope="session")
def decoder() -> ColumnDecoder:
    return ColumnDecoder(make_session())


@pytest.fixture(scope="session")
def samples(decoder: ColumnDecoder) -> Array:
    """Five seconds of the laas4 arm."""
    return _run_mock(decoder.session, 5000)


@pytest.fixture(scope="session")
def recorded(
    tmp_path_factory: pytest.TempPathFactory, decoder: ColumnDecoder, samples: Array
) -> Path:
    """The same, as a file. Not to be changed."""
    return _write(tmp_path_factory.mktemp("recorded") / "run.h5", decoder, samples)


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300 samples that nothing was measured for. Not to be changed."""
    path = tmp_path_factory.mktemp("sound") / "r.h5"
    behaviour = behaviour_of(profile_named("arm"), wire_s=38e-6)
    return make_recording(path, {"seq": np.arange(300)}, behaviour=behaviour)


@pytest.fixture
def file_path(sound: Path, tmp_path: Path) -> Path:
    """The same, to be changed."""
    return shutil.copy(sound, tmp_path / "r.h5")
