from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
import zmq
from commands import PROJECT, PYTHON, Result, armature
from sessions import make_session

from daq.robot import load_robot
from daq.samples.batches import (
    SAMPLES_PER_BATCH,
    SCHEMA,
    Header,
    Session,
    encode_header,
    encode_session,
)
from daq.samples.columns import ColumnDecoder
from daq.stream.endpoints import RobotEndpoints, robot_endpoints
from daq.stream.errors import RefusedError
from daq.stream.gateway.access import Access
from daq.stream.gateway.command_server import CommandServer
from daq.stream.gateway.publisher import Publisher
from daq.stream.keys import Keys, allow_key, load_keys, make_keys
from daq.stream.messages import (
    AnyCommand,
    BoardStatus,
    JointStatus,
    LoopStatus,
    Quantiles,
    RecorderReport,
    RenewLease,
    Status,
)
from daq.stream.requests import carry_out
from daq.system.runtime_directory import RuntimeDirectory, RuntimeLock

PATIENCE_S = 30.0


class Batches:
    """Makes the batches that a loop would publish."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.session_data = encode_session(session)
        self.layout = ColumnDecoder(session).layout

    def make(self, seq: int, **changes: Any) -> tuple[bytes, bytes]:
        samples = np.zeros(SAMPLES_PER_BATCH, self.layout.dtype)
        samples["seq"] = seq + np.arange(SAMPLES_PER_BATCH)
        samples["t_ns"] = self.session.start_t_ns + samples["seq"] * self.session.period_ns
        values: dict[str, Any] = {
            "schema": SCHEMA,
            "session": self.session.session,
            "fingerprint": self.session.fingerprint,
            "seq": seq,
            "count": SAMPLES_PER_BATCH,
            "t_ns": 0,
            "utc_ns": 0,
        }
        return encode_header(Header(**{**values, **changes})), samples.tobytes()


def make_status(**changes: Any) -> LoopStatus:
    times = Quantiles(p50=15.0, p99=50.0, p999=80.0, max=120.0)
    joints = tuple(
        JointStatus(
            name=joint.name,
            mode="off",
            is_homed=False,
            position_rad=-0.25,
            velocity_rad_s=0.0,
            torque_nm=None,
            iq_a=0.0,
            winding_temperature_degc=None,
        )
        for joint in load_robot("laas4").joints
    )
    board = BoardStatus(
        name="lower",
        device="/dev/spidev0.0",
        profile="uomodri",
        outcome="valid",
        fault="",
        bus_voltage_v=24.0,
        counters={"valid": 100, "corrupt": 0},
    )
    values: dict[str, Any] = {
        "state": "idle",
        "reason": "just [started]",
        "session": "run-1",
        "robot": "laas4",
        "link": "mock",
        "is_mock": True,
        "is_virtual": False,
        "uptime_s": 12.0,
        "seq": 12000,
        "cycles": 12000,
        "skipped": 3,
        "lost": 0,
        "corrupt": 0,
        "publish_dropped": 0,
        "wake_us": times,
        "work_us": times,
        "is_at_rest": True,
        "trajectories": 0,
        "joints": joints,
        "boards": (board,),
        "recording": "",
        "recorder": RecorderReport(state="idle", problem="disk full"),
        "recorder_age_s": 0.2,
        "privileges": ("SCHED_FIFO",),
        "events": ("12.0 s: [red]something",),
    }
    return LoopStatus(**{**values, **changes})


class FakeLoop:
    """A handler that answers like a loop, and remembers what reached it."""

    def __init__(self) -> None:
        self.commands: list[AnyCommand] = []
        self.payloads: list[bytes] = []
        self.status = make_status()
        self.later: list[LoopStatus | RefusedError] = []
        self.refusal: RefusedError | None = None
        self.lost: RefusedError | None = None
        """What the renewals of a lease are refused with."""
        self.result: object = None

    def __call__(self, command: AnyCommand, payload: bytes) -> object:
        self.commands.append(command)
        self.payloads.append(payload)
        if isinstance(command, Status):
            if self.later:
                status = self.later.pop(0)
                if isinstance(status, RefusedError):
                    raise status
                self.status = status
            return self.status
        if self.refusal is not None:
            raise self.refusal
        if self.lost is not None and isinstance(command, RenewLease):
            raise self.lost
        return self.result

    def told(self, *kinds: type) -> list[AnyCommand]:
        return [command for command in self.commands if isinstance(command, kinds)]

    def will_be(self, *changes: dict[str, Any]) -> None:
        """What the status says from now on, one time each; the last one stays."""
        self.later = [msgspec.structs.replace(self.status, **change) for change in changes]


class PolledServer:
    """A command socket, and a loop that answers when it is polled."""

    def __init__(
        self,
        context: zmq.Context[Any],
        endpoints: list[str],
        handler: Callable[..., object],
        *,
        curve: Keys | None = None,
    ) -> None:
        self._server = CommandServer(context, endpoints, curve=curve)
        self.handler = handler
        self.close = self._server.socket.close

    def poll(self) -> bool:
        """Handle at most one message; says whether there was one."""
        is_there = bool(self._server.socket.poll(0))
        asked = self._server.receive()
        if asked is not None:
            self._server.answer(asked, carry_out(asked.request, self.handler))
        return is_there


class Server:
    """A loop's sockets in a thread of their own: polls, and publishes when asked to."""

    def __init__(
        self, endpoints: RobotEndpoints, handler: Callable[..., object], keys: Keys | None = None
    ) -> None:
        self.batches = Batches(make_session(session="run-1"))
        self.is_publishing = True
        self._is_over = threading.Event()
        self._context: zmq.Context[Any] = zmq.Context()
        self.access = Access(self._context, keys) if keys else None
        self.publisher = Publisher(self._context, [endpoints.stream], curve=keys)
        self.commands = PolledServer(self._context, [endpoints.commands], handler, curve=keys)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        cycle = 0
        while not self._is_over.wait(0.001):
            if self.access:
                self.access.poll()
            self.commands.poll()
            if self.is_publishing and cycle % 20 == 0:
                self.publisher.publish(*self.batches.make(cycle))
            if self.is_publishing and cycle % 200 == 0:
                self.publisher.publish_session(self.batches.session_data)
            cycle += 1

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()
        self._context.destroy(linger=200)


@pytest.fixture
def context() -> Iterator[zmq.Context[Any]]:
    """A context that closes the sockets that a test leaves open."""
    kept: list[Any] = []

    class Keeping(zmq.Context[Any]):
        def socket(self, *arguments: Any, **options: Any) -> Any:
            kept.append(super().socket(*arguments, **options))
            return kept[-1]

    context = Keeping()
    yield context
    for left in kept:
        left.close(linger=0)
    context.term()


@pytest.fixture
def runtime(tmp_path: Path) -> RuntimeDirectory:
    path = tmp_path / "run"
    path.mkdir(mode=0o750)
    return RuntimeDirectory(path)


@pytest.fixture
def loop() -> FakeLoop:
    return FakeLoop()


@pytest.fixture
def polled_server(context: zmq.Context[Any], loop: FakeLoop) -> Callable[..., PolledServer]:
    """Makes a server; `loop` answers unless another handler is given."""

    def make(
        endpoint: str, *more: str, handler: Callable[..., object] = loop, curve: Keys | None = None
    ) -> PolledServer:
        return PolledServer(context, [endpoint, *more], handler, curve=curve)

    return make


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def begin(*arguments: Any) -> Server:
        servers.append(Server(*arguments))
        return servers[-1]

    yield begin
    for server in servers:
        server.close()


@pytest.fixture
def server(
    serve: Callable[..., Server], runtime: RuntimeDirectory, loop: FakeLoop
) -> Iterator[Server]:
    """A loop in the runtime directory."""
    with RuntimeLock(runtime.path):
        yield serve(robot_endpoints(runtime), loop)


@pytest.fixture
def address() -> str:
    """A free pair of ports."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            with contextlib.suppress(OSError, OverflowError):
                second.bind(("127.0.0.1", port + 1))
                return f"tcp://127.0.0.1:{port}"


class Parties(NamedTuple):
    """Directories of keys."""

    robot: Path
    friend: Path
    stranger: Path


@pytest.fixture
def parties(tmp_path: Path) -> Parties:
    """A robot that trusts a friend; a friend and a stranger that trust the robot."""
    made = Parties(*(tmp_path / name for name in Parties._fields))
    for path in made:
        make_keys(path, path.name)
    allow_key(made.robot, made.friend / "friend.pub")
    allow_key(made.friend, made.robot / "robot.pub")
    allow_key(made.stranger, made.robot / "robot.pub")
    return made


@pytest.fixture
def tcp_server(
    serve: Callable[..., Server], address: str, loop: FakeLoop, parties: Parties
) -> Server:
    return serve(robot_endpoints(address), loop, load_keys(parties.robot))


@pytest.fixture(name="armature")
def armature_here(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs a command line in this process, with room for tables."""
    monkeypatch.setenv("COLUMNS", "160")
    return armature


@pytest.fixture
def start(processes: None) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Starts Python code in a process of its own."""
    processes: list[subprocess.Popen[str]] = []

    def begin(code: str, *arguments: object, **options: Any) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*PYTHON, "-c", code, *map(str, arguments)],
            text=True,
            **{
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                "env": {**os.environ, "PYTHONPATH": str(PROJECT)},
                **options,
            },
        )
        processes.append(process)
        return process

    yield begin
    for process in processes:
        process.send_signal(signal.SIGKILL)
        process.communicate()


@pytest.fixture
def make_batches() -> Callable[..., Batches]:
    return lambda robot, name: Batches(make_session(robot, session=name))


@pytest.fixture
def batches() -> Batches:
    return Batches(make_session(session="run-1"))
