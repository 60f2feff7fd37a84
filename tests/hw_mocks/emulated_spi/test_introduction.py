"""Whether an opened device is an emulated one of ours is asked of the device itself."""

from __future__ import annotations

import contextlib
import os
import pty
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hw_mocks.emulated_spi import introduction
from hw_mocks.emulated_spi.device import socket_path
from hw_mocks.emulated_spi.introduction import Introduction, ask_who
from hw_mocks.emulated_spi.packets import MAGIC, REPLY, VERSION
from hw_mocks.emulated_spi.server import SpidevServer
from hw_mocks.errors import NotEmulatedError

DEVICE, OTHER = "/dev/spidev0.0", "/dev/spidev0.1"
MARK = "?seed=3&spread=0.25"


@pytest.fixture
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of a server, at work."""
    path = tmp_path_factory.mktemp("d", numbered=True)
    path.chmod(0o700)
    is_over = threading.Event()
    with SpidevServer(path, [DEVICE, OTHER], lambda transfer: transfer.tx, mark=MARK) as server:

        def serve() -> None:
            while not is_over.is_set():
                server.poll(0.01)

        thread = threading.Thread(target=serve)
        thread.start()
        yield path
        is_over.set()
        thread.join()


@contextlib.contextmanager
def opened(directory: Path, device: str = DEVICE) -> Iterator[socket.socket]:
    """As the shim opens a device."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(socket_path(directory, device))
        yield connection


def refusal(descriptor: int) -> NotEmulatedError:
    with pytest.raises(NotEmulatedError) as caught:
        ask_who(descriptor, DEVICE)
    assert caught.value.device == DEVICE
    return caught.value


def test_an_emulated_device_says_who_it_is(directory: Path) -> None:
    with opened(directory) as connection:
        assert ask_who(connection.fileno(), DEVICE) == Introduction(DEVICE, MARK)
        assert ask_who(connection.fileno(), DEVICE).mark == MARK, "as often as one likes"
        assert connection.getblocking()


def test_another_device_of_the_same_robot_is_refused(directory: Path) -> None:
    with opened(directory, OTHER) as connection:
        assert OTHER in refusal(connection.fileno()).reason


def test_what_is_no_socket_gets_nothing_to_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with file.open("w+b") as plain:
        refusal(plain.fileno())
    assert file.read_bytes() == b""
    near, far = pty.openpty()
    os.set_blocking(near, False)
    refusal(far)
    with pytest.raises(BlockingIOError):
        os.read(near, 1)
    os.close(near)
    os.close(far)
    with open(os.devnull, "w+b", buffering=0) as nothing:
        refusal(nothing.fileno())


def test_a_closed_descriptor() -> None:
    descriptor = os.open(os.devnull, os.O_RDONLY)
    os.close(descriptor)
    refusal(descriptor)


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_another_kind_of_socket_gets_nothing(kind: socket.SocketKind) -> None:
    near, far = socket.socketpair(socket.AF_UNIX, kind)
    with near, far:
        refusal(near.fileno())
        far.setblocking(False)
        with pytest.raises(BlockingIOError):
            far.recv(1)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"hello",
        REPLY.pack(MAGIC, VERSION, 0, 22, 0),
        REPLY.pack(MAGIC, VERSION + 1, 0, 0, 0) + b'{"device":"/dev/spidev0.0","mark":""}',
        REPLY.pack(MAGIC, VERSION, 0, 0, 0),
        REPLY.pack(MAGIC, VERSION, 0, 0, 0) + b'{"device":7,"mark":""}',
    ],
)
def test_an_answer_that_is_none_of_ours(answer: bytes) -> None:
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with near, far:
        far.send(answer)
        refusal(near.fileno())


def test_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(introduction, "_ANSWER_MAX_MS", 10)
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with near, far:
        refusal(near.fileno())


def test_another_users_socket_gets_nothing(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with opened(directory) as connection:
        refusal(connection.fileno())


def test_the_server_is_gone(directory: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        path = str(directory / "other")
        listener.bind(path)
        listener.listen()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.connect(path)
            listener.accept()[0].close()
            refusal(connection.fileno())
