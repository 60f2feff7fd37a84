"""What systemd would receive, over real datagram sockets."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from acceptance import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from daq.service.notify import Notifier


@pytest.fixture(params=["path", "abstract"])
def listener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[socket.socket, str]]:
    name = f"armature-test-{os.getpid()}" if request.param == "abstract" else tmp_path / "notify"
    address = f"@{name}" if request.param == "abstract" else str(name)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bound:
        bound.bind(address.replace("@", "\0", 1))
        bound.settimeout(10.0)
        yield bound, address


def test_every_message(listener: tuple[socket.socket, str]) -> None:
    bound, address = listener
    notifier = Notifier.from_environment({"NOTIFY_SOCKET": address})

    notifier.ready()
    notifier.watchdog()
    notifier.stopping()
    notifier.close()
    notifier.ready()

    received = [bound.recv(1000) for _ in range(3)]
    assert received == [b"READY=1", b"WATCHDOG=1", b"STOPPING=1"]


def test_a_systemd_that_does_not_listen_never_blocks(listener: tuple[socket.socket, str]) -> None:
    bound, address = listener
    notifier = Notifier(address)

    for _ in range(2000):
        notifier.watchdog()
    notifier.close()

    received = 0
    bound.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while bound.recv(100):
            received += 1
    assert 0 < received < 2000


@pytest.mark.parametrize("address", ["/nowhere/at/all", "@nobody-listens-here", "/" + 200 * "x"])
def test_nobody_there(address: str) -> None:
    notifier = Notifier(address)
    notifier.ready()
    notifier.close()


def test_a_socket_made_anew_is_found(tmp_path: Path) -> None:
    path = tmp_path / "notify"
    notifier = Notifier(str(path))
    for _ in range(2):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bound:
            bound.bind(str(path))
            notifier.watchdog()
            assert bound.recv(100, socket.MSG_DONTWAIT) == b"WATCHDOG=1"
        path.unlink()
        notifier.watchdog()
    notifier.close()


@given(st.text(st.characters(min_codepoint=1, exclude_categories=["Cs"]), max_size=50))
@settings(max_examples=examples(100))
def test_no_address_raises(address: str) -> None:
    # An address that happens to exist is nobody's who listens for datagrams.
    notifier = Notifier("/nowhere/" + address)
    notifier.ready()
    notifier.close()
    Notifier(address.lstrip("/@")).ready()


@pytest.mark.parametrize("address", [None, "", "vsock:2:1234", "relative/path"])
def test_without_a_socket_nothing_happens(address: str | None) -> None:
    notifier = Notifier(address)
    notifier.ready()


@pytest.mark.parametrize(
    ("environment", "interval_s"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "2000000"}, 1.0),
        ({"WATCHDOG_USEC": "2000000", "WATCHDOG_PID": str(os.getpid())}, 1.0),
        ({"WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "-5"}, None),
        ({"WATCHDOG_USEC": "²"}, None),
    ],
)
def test_watchdog_interval(environment: dict[str, str], interval_s: float | None) -> None:
    assert Notifier.from_environment(environment).watchdog_interval_s == interval_s
