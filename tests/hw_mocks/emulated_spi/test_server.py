"""The server against peers that do not behave; needs neither compiler nor spidev."""

from __future__ import annotations

import errno
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hw_mocks.emulated_spi.server import SpidevServer, SpiTransfer
from hw_mocks.errors import EmulatedDeviceError

pytestmark = pytest.mark.system

DEVICE = "/dev/spidev0.0"
REQUEST = struct.Struct("=3sBBBBxII")
REPLY = struct.Struct("=3sBIII")


class Recorder:
    def __init__(self) -> None:
        self.seen: list[SpiTransfer] = []
        self.answer: bytes | int | None = None

    def __call__(self, transfer: SpiTransfer) -> bytes | int:
        self.seen.append(transfer)
        return transfer.tx if self.answer is None else self.answer


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def server(short_directory: Path, recorder: Recorder) -> Iterator[SpidevServer]:
    with SpidevServer(short_directory, [DEVICE], recorder) as running:
        yield running


@pytest.fixture
def peer(server: SpidevServer, short_directory: Path) -> Iterator[socket.socket]:
    with connect(short_directory) as connected:
        server.poll(1)
        yield connected


def connect(directory: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(5)
    connection.connect(str(directory / "spidev0.0"))
    return connection


def request(
    data: bytes = b"", *, version: int = 1, operation: int = 0, setting: int = 0, value: int = 0
) -> bytes:
    return REQUEST.pack(b"SPI", version, operation, setting, 0, 7, value) + data


def test_a_transfer_is_answered_with_its_sequence_number(
    server: SpidevServer, peer: socket.socket, recorder: Recorder
) -> None:
    peer.send(request(b"abc", value=8_000_000))
    assert server.poll(1) == 1
    (seen,) = recorder.seen
    assert seen[:5] == (DEVICE, b"abc", 0, 8, 8_000_000)
    assert 0 <= time.monotonic_ns() - seen.started_ns < 10e9
    assert peer.recv(99) == REPLY.pack(b"SPI", 1, 7, 0, 8_000_000) + b"abc"


def test_another_version_is_told_so(
    server: SpidevServer, peer: socket.socket, recorder: Recorder
) -> None:
    peer.send(request(b"abc", version=2))
    server.poll(1)
    assert REPLY.unpack(peer.recv(99))[3] == errno.EPROTO
    assert not recorder.seen


@pytest.mark.parametrize(
    "packet",
    [
        request(),
        request(operation=9),
        request(operation=1, setting=3),
        request(operation=2, setting=3),
        request(operation=2, setting=0, value=1 << 17),
        request(operation=2, setting=1, value=33),
        request(operation=2, setting=2, value=0),
    ],
)
def test_nonsense_is_refused(server: SpidevServer, peer: socket.socket, packet: bytes) -> None:
    peer.send(packet)
    assert server.poll(1) == 0
    assert REPLY.unpack(peer.recv(99))[3] == errno.EINVAL


def test_bytes_without_our_header_are_a_plain_write(
    server: SpidevServer, peer: socket.socket, recorder: Recorder
) -> None:
    for text in (b"x", b"a line from a shell's echo"):
        peer.send(text)
        assert server.poll(1) == 1
        assert recorder.seen[-1].tx == text


def test_too_long_a_packet_disconnects(
    server: SpidevServer, peer: socket.socket, recorder: Recorder
) -> None:
    peer.send(request(bytes(8193)))
    assert server.poll(1) == 0
    assert peer.recv(99) == b""
    assert not recorder.seen


def test_a_peer_that_never_reads_is_disconnected(server: SpidevServer, peer: socket.socket) -> None:
    for _ in range(10_000):
        try:
            peer.send(request(bytes(4096)))
        except OSError:
            return
        server.poll(1)
    pytest.fail("the server kept answering")


def test_connections_are_limited(server: SpidevServer, short_directory: Path) -> None:
    peers = [connect(short_directory) for _ in range(200)]
    while server.poll(0.01):
        pass
    for _ in range(200):
        server.poll(0)
    peers += [connect(short_directory) for _ in range(100)]
    for _ in range(100):
        server.poll(0)
    peers[-1].settimeout(1)
    assert peers[-1].recv(1) == b""
    for connection in peers:
        connection.close()


def test_the_board_may_remove_the_device_it_is_answering(short_directory: Path) -> None:
    def answer(transfer: SpiTransfer) -> bytes:
        running.remove(transfer.device)
        return transfer.tx

    running = SpidevServer(short_directory, [DEVICE], answer)
    with running, connect(short_directory) as peer:
        running.poll(1)
        peer.send(request(b"abc"))
        assert running.poll(1) == 1
        assert peer.recv(99) == b""
        running.remove(DEVICE)
        running.restore(DEVICE)
        running.restore(DEVICE)
        connect(short_directory).close()


def test_waiting_is_accurate_below_a_millisecond(server: SpidevServer) -> None:
    durations_s = []
    for _ in range(50):
        start = time.perf_counter()
        assert server.poll(0.0003) == 0
        durations_s.append(time.perf_counter() - start)
    assert 0.0003 <= min(durations_s) < 0.0009  # the shortest: the machine may be busy


def test_between_the_transfers_of_a_loop_it_sleeps(
    server: SpidevServer, peer: socket.socket
) -> None:
    busy_s = 0.0
    for _ in range(10):
        peer.send(request(b"abc"))
        server.poll(1)
        started_s = time.process_time()
        until_s = time.monotonic() + 0.01
        while time.monotonic() < until_s:
            server.poll(0.002)
        busy_s += time.process_time() - started_s
    assert busy_s < 0.05, "of 0.1 s"


def test_only_a_private_directory_is_used(short_directory: Path) -> None:
    shared = short_directory / "shared"
    shared.mkdir()
    shared.chmod(0o750)
    with pytest.raises(EmulatedDeviceError) as refused:
        SpidevServer(shared, [DEVICE], lambda transfer: transfer.tx)
    assert refused.value.code == "not-private"
    assert str(shared) in str(refused.value) and "750" in str(refused.value)


def test_a_missing_directory_is_made_private(short_directory: Path) -> None:
    directory = short_directory / "new"
    with SpidevServer(directory, [DEVICE], lambda transfer: transfer.tx):
        assert directory.stat().st_mode & 0o777 == 0o700
    assert not list(directory.iterdir())


@pytest.mark.parametrize("name", ["spidev0.0", "/dev/spidev0", "/dev/spidev0.0/..", "/dev/null"])
def test_only_spi_devices_are_emulated(short_directory: Path, name: str) -> None:
    with pytest.raises(EmulatedDeviceError) as refused:
        SpidevServer(short_directory, [name], lambda transfer: transfer.tx)
    assert refused.value.code == "not-a-device"


def test_too_long_a_path_is_explained(short_directory: Path) -> None:
    with pytest.raises(EmulatedDeviceError) as refused:
        SpidevServer(short_directory / ("x" * 100), [DEVICE], lambda transfer: transfer.tx)
    assert refused.value.code == "long-path"


def test_a_second_server_is_refused_and_a_dead_one_replaced(
    server: SpidevServer, short_directory: Path, recorder: Recorder
) -> None:
    with pytest.raises(EmulatedDeviceError) as refused:
        SpidevServer(short_directory, [DEVICE], recorder)
    assert refused.value.code == "in-use"
    connect(short_directory).close()
    left_behind = short_directory / "spidev0.1"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as dead:
        dead.bind(str(left_behind))
    with SpidevServer(short_directory, ["/dev/spidev0.1"], recorder):
        pass
    assert not left_behind.exists()


def test_closing_twice_is_harmless(short_directory: Path, recorder: Recorder) -> None:
    server = SpidevServer(short_directory, [DEVICE], recorder)
    server.close()
    server.close()
