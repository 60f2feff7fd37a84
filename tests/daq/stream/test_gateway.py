"""The gateway: a process of its own, whatever happens to it or to the loop."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st

from daq.errors import ConfigError
from daq.stream.command_client import CommandClient
from daq.stream.errors import BindError, CommandRefusedError
from daq.stream.gateway.command_port import CommandPort
from daq.stream.gateway.keeper import MEMORY_MAX_BYTES
from daq.stream.gateway.link import GatewayLink
from daq.stream.gateway.packets import (
    EXPIRES_S,
    Kind,
    NumberedRequest,
    RawRequest,
    answer_packet,
    make_pair,
    read_answer_packet,
    read_request_packet,
    read_stream_packet,
    request_packet,
    stream_packet,
)
from daq.stream.keys import load_keys
from daq.stream.messages import Disable, Enable, Status, Stop
from daq.stream.subscriber import Subscriber
from daq.system.runtime_directory import RuntimeDirectory

pytestmark = pytest.mark.system

PATIENCE_S = 30.0
LOOP = """
import sys, time
from pathlib import Path
from daq.system.runtime_directory import RuntimeDirectory
from daq.stream.gateway.link import GatewayLink

link = GatewayLink(RuntimeDirectory(Path(sys.argv[1])))
link.wait_until_open()
print("open", flush=True)
for number in range(100):
    link.publish(b"%d" % number, b"payload")
time.sleep(600)
"""


def wait_for(condition: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def gateways(link: GatewayLink) -> list[int]:
    """The processes that have the sockets: children of the one that keeps them going."""
    try:
        children = Path(f"/proc/{link.pid}/task/{link.pid}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in children.split()]


class Loop:
    """The loop's end of a gateway, with a thread that answers requests unless it is told not to."""

    def __init__(self, link: GatewayLink, handler: Callable[..., object]) -> None:
        self.link = link
        self.port = CommandPort(link.commands, handler)
        self.is_away = threading.Event()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over.wait(0.002):
            if not self.is_away.is_set():
                self.port.poll()

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()
        self.link.close()


@pytest.fixture
def begin(runtime: RuntimeDirectory, loop: Any) -> Iterator[Callable[..., Loop]]:
    """Starts a gateway."""
    loops: list[Loop] = []

    def start(**options: Any) -> Loop:
        link = GatewayLink(runtime, **options)
        loops.append(Loop(link, loop))
        link.wait_until_open()
        return loops[-1]

    yield start
    for each in loops:
        each.close()


@pytest.fixture
def live(begin: Callable[..., Loop]) -> Loop:
    return begin()


# --- what goes through it -------------------------------------------------------------------------


def test_samples_reach_subscribers(live: Loop, runtime: RuntimeDirectory, batches: Any) -> None:
    with Subscriber(runtime) as subscriber:
        seq, received = 0, []
        while len(received) < 50:
            if seq % 200 == 0:
                live.link.publish_session(batches.session_data)
            live.link.publish(*batches.make(seq))
            seq += 20
            time.sleep(0.005)
            with contextlib.suppress(TimeoutError):
                received.append(subscriber.receive(0.0).header.seq)

    assert received == list(range(received[0], received[0] + 1000, 20))
    assert live.link.dropped == 0


def test_commands_reach_the_loop(live: Loop, runtime: RuntimeDirectory, loop: Any) -> None:
    with CommandClient(runtime.commands) as client:
        assert client.status().state == "idle"
        client.ask(Stop())

    assert [type(command) for command in loop.commands] == [Status, Stop]


def test_what_is_no_request_does_not_reach_the_loop(
    live: Loop, runtime: RuntimeDirectory, context: Any, loop: Any
) -> None:
    client = context.socket(zmq.DEALER)
    client.connect(runtime.commands)
    for bad in (b"", b"{}", b'{"command": "enabel", "id": 4}', b"\xff" * 100):
        client.send(bad)
        assert client.poll(PATIENCE_S * 1000)
        assert not json.loads(client.recv_multipart()[-1])["ok"]

    assert loop.commands == []


def test_plotjuggler_is_served(begin: Callable[..., Loop], address: str, context: Any) -> None:
    live = begin(plotjuggler_port=int(address.rpartition(":")[2]))
    reader = context.socket(zmq.SUB)
    reader.subscribe(b"")
    reader.connect(address)
    while not reader.poll(10):
        live.link.plot(12.5, {"J1/position_rad": 0.25})

    topic, values, time_s = reader.recv_multipart()

    assert (topic, time_s) == (b"armature", b"12.500000")
    assert msgspec.msgpack.decode(values) == {"J1/position_rad": 0.25}


def test_tcp_is_for_those_on_the_list(
    begin: Callable[..., Loop], address: str, parties: Any, loop: Any
) -> None:
    begin(bind=[address], keys=load_keys(parties.robot))

    with CommandClient(address, keys=load_keys(parties.friend)) as client:
        client.ask(Stop(), timeout_s=PATIENCE_S)
    with (
        CommandClient(address, keys=load_keys(parties.stranger)) as client,
        pytest.raises(TimeoutError),
    ):
        client.ask(Enable(), timeout_s=0.7)
    assert [type(command) for command in loop.commands] == [Stop]


def test_everything_is_published_before_it_ends(
    live: Loop, runtime: RuntimeDirectory, context: Any
) -> None:
    reader = context.socket(zmq.SUB)
    reader.subscribe(b"")
    reader.connect(runtime.stream)
    while not reader.poll(10):
        live.link.publish(b"-1", b"")
    (child,) = gateways(live.link)
    for number in range(100):
        live.link.publish(b"%d" % number, bytes(5000))

    live.close()

    last = b""
    while reader.poll(500):
        last = reader.recv_multipart()[1]
    assert last == b"99"
    assert not Path(f"/proc/{child}").exists()


# --- what cannot be -------------------------------------------------------------------------------


def test_tcp_without_keys_is_refused(runtime: RuntimeDirectory, address: str) -> None:
    with pytest.raises(ConfigError) as refused:
        GatewayLink(runtime, bind=[address])
    assert refused.value.source == address
    assert "--keys" in refused.value.problems[0]


@pytest.mark.parametrize("is_plot", [True, False])
def test_port_that_is_taken_is_named(
    begin: Callable[..., Loop], address: str, parties: Any, is_plot: bool
) -> None:
    port = int(address.rpartition(":")[2])
    options = {"plotjuggler_port": port}
    if not is_plot:
        options = {"bind": [address], "keys": load_keys(parties.robot)}
    with socket.create_server(("127.0.0.1", port)), pytest.raises(BindError) as refused:
        begin(**options)
    assert refused.value.code == "not-opened"
    assert f":{port}" in str(refused.value)


def test_gateway_that_does_not_start(
    runtime: RuntimeDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    link = GatewayLink(runtime)

    with pytest.raises(BindError) as failed:
        link.wait_until_open()
    assert failed.value.code == "ended"
    link.close()


# --- what happens to it ---------------------------------------------------------------------------


def test_a_killed_gateway_is_started_again(live: Loop, runtime: RuntimeDirectory) -> None:
    for life in (2, 3):
        (child,) = gateways(live.link)
        os.kill(child, signal.SIGKILL)
        while (report := live.link.read_report()) is None or report.life != life:
            time.sleep(0.01)
        with CommandClient(runtime.commands) as client:
            wait_for(lambda client=client: _is_answered(client))


def _is_answered(client: CommandClient) -> bool:
    with contextlib.suppress(TimeoutError):
        return client.status(0.5).state == "idle"
    return False


def test_a_frozen_gateway_holds_up_nothing(live: Loop) -> None:
    (child,) = gateways(live.link)
    os.kill(child, signal.SIGSTOP)

    for number in range(5000):
        live.link.publish(b"%d" % number, bytes(5000))
    dropped = live.link.dropped

    assert 0 < dropped < 5000
    os.kill(child, signal.SIGCONT)
    wait_for(lambda: _is_sent(live.link))


def _is_sent(link: GatewayLink) -> bool:
    dropped = link.dropped
    link.publish(b"", b"")
    return link.dropped == dropped


def test_a_gateway_that_hangs_is_replaced(live: Loop, runtime: RuntimeDirectory) -> None:
    (child,) = gateways(live.link)
    os.kill(child, signal.SIGSTOP)
    while (report := live.link.read_report()) is None or report.life != 2:
        time.sleep(0.01)

    with CommandClient(runtime.commands) as client:
        wait_for(lambda: _is_answered(client))


def test_a_pause_of_the_whole_computer_is_no_hanging(live: Loop, runtime: RuntimeDirectory) -> None:
    """A virtual machine that stood still: nobody hangs, and requests under way are answered."""
    everyone = [live.link.pid, *gateways(live.link)]
    with CommandClient(runtime.commands) as client:
        assert _is_answered(client)
        for number in everyone:
            os.kill(number, signal.SIGSTOP)
        time.sleep(6.0)
        for number in everyone:
            os.kill(number, signal.SIGCONT)

        assert client.status(PATIENCE_S).state == "idle"
    assert [live.link.pid, *gateways(live.link)] == everyone


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_gateway_that_hangs_at_the_end(live: Loop, is_kept: bool) -> None:
    (child,) = gateways(live.link)
    os.kill(child, signal.SIGSTOP)
    if not is_kept:
        os.kill(live.link.pid, signal.SIGKILL)
    live.close()

    wait_for(lambda: not _is_running(child))


def _is_running(number: int) -> bool:
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_nobody_is_left_to_keep_it_going(live: Loop) -> None:
    (child,) = gateways(live.link)
    for number in (live.link.pid, child):
        os.kill(number, signal.SIGKILL)
    wait_for(lambda: live.link.publish(b"", b"") or live.link.dropped)

    assert live.link.read_report() is None
    assert live.port.poll() is False


@pytest.mark.parametrize("is_gateway_frozen", [False, True])
def test_loop_that_is_killed_and_started_again(
    start: Any, runtime: RuntimeDirectory, begin: Callable[..., Loop], is_gateway_frozen: bool
) -> None:
    first = start(LOOP, runtime.path)
    assert first.stdout.readline() == "open\n"
    if is_gateway_frozen:
        _freeze_gateway(first.pid)
    first.kill()
    begin()

    for _ in range(3):
        with CommandClient(runtime.commands) as client:
            assert client.status(PATIENCE_S).state == "idle"
        time.sleep(0.2)


def _freeze_gateway(loop: int) -> None:
    """The grandchild of a process."""
    number = loop
    for _ in range(2):
        number = int(Path(f"/proc/{number}/task/{number}/children").read_text().split()[0])
    os.kill(number, signal.SIGSTOP)


# --- what happens to the loop ---------------------------------------------------------------------


def test_a_request_expires(live: Loop, runtime: RuntimeDirectory, loop: Any) -> None:
    """A loop that was away does not do what nobody counts on any more."""
    live.is_away.set()
    with CommandClient(runtime.commands) as client:
        for _ in range(3):
            with pytest.raises(CommandRefusedError) as refused:
                client.ask(Enable())
            assert refused.value.code == "no-answer"
        live.is_away.clear()

        wait_for(lambda: _is_status_answered(client))

    assert not loop.told(Enable)


def test_what_its_client_has_given_up_is_not_done(
    live: Loop, runtime: RuntimeDirectory, loop: Any
) -> None:
    """Wherever it was held up: here in ZeroMQ's queues, before the gateway could see it."""
    (child,) = gateways(live.link)
    with CommandClient(runtime.commands) as client:
        client.status()
        os.kill(child, signal.SIGSTOP)
        for command in (Enable(), Stop()):
            with pytest.raises(TimeoutError):
                client.ask(command, timeout_s=0.3)
    os.kill(child, signal.SIGCONT)

    wait_for(lambda: loop.told(Stop))
    with CommandClient(runtime.commands) as client:
        client.ask(Disable())
    assert not loop.told(Enable)


def test_a_short_absence_of_the_loop(live: Loop, runtime: RuntimeDirectory, loop: Any) -> None:
    """None of several requests is carried out that waited for longer than half a second."""
    live.is_away.set()
    time.sleep(0.05)
    clients = [CommandClient(f"{runtime.commands}") for _ in range(4)]
    for client in clients:
        assert client._wait(zmq.POLLOUT, time.monotonic() + PATIENCE_S)
        assert client.tell(Enable())
    time.sleep(0.8)
    live.is_away.clear()
    with CommandClient(runtime.commands) as client:
        wait_for(lambda: _is_status_answered(client))
    for each in clients:
        each.close()

    assert not loop.told(Enable)


def test_a_crowd_that_asks_for_statuses_does_not_reach_the_loop(
    live: Loop, runtime: RuntimeDirectory, context: Any, loop: Any
) -> None:
    crowd = [context.socket(zmq.DEALER) for _ in range(20)]
    for socket_ in crowd:
        socket_.connect(runtime.commands)
    until_s, answers = time.monotonic() + 1.0, 0
    while time.monotonic() < until_s:
        for socket_ in crowd:
            socket_.send(b'{"command":"status"}')
        for socket_ in crowd:
            assert socket_.poll(PATIENCE_S * 1000)
            answers += json.loads(socket_.recv())["ok"]

    assert answers > 3 * len(loop.commands) > 0


def test_an_answer_that_never_comes_shuts_nobody_out(live: Loop, runtime: RuntimeDirectory) -> None:
    live.is_away.set()
    time.sleep(0.1)
    with CommandClient(runtime.commands) as client:
        with pytest.raises(CommandRefusedError) as refused:
            client.ask(Enable())
        assert refused.value.code == "no-answer"
        live.link.commands.recv(1 << 16)  # read, and forgotten
        live.is_away.clear()

        wait_for(lambda: _is_status_answered(client))


def _is_status_answered(client: CommandClient) -> bool:
    with contextlib.suppress(CommandRefusedError):
        return client.status().state == "idle"
    return False


# --- what clients do to it ------------------------------------------------------------------------


def raw_client(path: Path, kind: bytes) -> socket.socket:
    """A ZMTP 3.0 connection of which we make every byte."""
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(PATIENCE_S)
    client.connect(str(path))
    client.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32))
    greeting = b""
    while len(greeting) < 64:
        greeting += client.recv(64 - len(greeting))
    ready = b"\x05READY\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind
    client.sendall(b"\x04" + bytes([len(ready)]) + ready)
    return client


def test_a_message_without_end(live: Loop, runtime: RuntimeDirectory) -> None:
    """It is kept in memory until its end, so the memory has one."""
    part = b"\x03" + struct.pack(">Q", 1 << 16) + bytes(1 << 16)

    with (
        raw_client(runtime.path / "commands", b"DEALER") as client,
        pytest.raises(ConnectionError),
    ):
        for _ in range(2 * MEMORY_MAX_BYTES // len(part)):
            client.sendall(part)

    with CommandClient(runtime.commands) as honest:
        wait_for(lambda: _is_answered(honest))


# --- packets --------------------------------------------------------------------------------------

parts = st.binary(max_size=100)


@given(kind=st.sampled_from(Kind), first=parts, second=parts)
def test_stream_packets(kind: Kind, first: bytes, second: bytes) -> None:
    packet = b"".join(stream_packet(kind, first, second))

    assert read_stream_packet(packet) == (kind, first, second)


@given(
    number=st.integers(0, 2**64 - 1),
    asked_ns=st.integers(0, 2**63 - 1),
    data=parts,
    payload=st.none() | parts,
)
def test_request_packets(number: int, asked_ns: int, data: bytes, payload: bytes | None) -> None:
    numbered = NumberedRequest(number, asked_ns, RawRequest(data, payload))

    assert read_request_packet(b"".join(request_packet(numbered))) == numbered


@given(number=st.integers(0, 2**64 - 1), answer=parts)
def test_answer_packets(number: int, answer: bytes) -> None:
    assert read_answer_packet(b"".join(answer_packet(number, answer))) == (number, answer)


@given(packet=st.binary(min_size=1, max_size=200))
def test_a_gateway_out_of_its_mind_does_not_stop_the_loop(packet: bytes) -> None:
    """Whatever comes: the port answers or not, and goes on."""
    ours, theirs = make_pair()
    with ours, theirs:
        port = CommandPort(ours, lambda _command, _payload: None)
        theirs.send(packet)
        port.poll()
        request = RawRequest(b'{"command":"status","id":7}', None)
        theirs.sendmsg(request_packet(NumberedRequest(5, time.monotonic_ns(), request)))

        assert port.poll()
        with contextlib.suppress(BlockingIOError):
            while True:
                last = theirs.recv(1000)
    assert read_answer_packet(last) == (5, b'{"id":7,"ok":true,"result":null}')


def test_a_request_that_waited_in_the_pair_is_refused(loop: Any) -> None:
    ours, theirs = make_pair()
    with ours, theirs:
        port = CommandPort(ours, loop)
        asked_ns = time.monotonic_ns() - round((EXPIRES_S + 0.1) * 1e9)
        request = RawRequest(b'{"command":"enable"}', None)
        theirs.sendmsg(request_packet(NumberedRequest(5, asked_ns, request)))
        port.poll()
        number, answer = read_answer_packet(theirs.recv(1000))

    assert (number, json.loads(answer)["error"]["code"]) == (5, "too-late")
    assert loop.commands == []


# --- errands --------------------------------------------------------------------------------------


def errand_that_makes(path: Path) -> tuple[str, ...]:
    return (sys.executable, "-c", f"open({str(path)!r}, 'a').write('done ')")


def test_an_errand_is_run_each_time_it_is_asked_for(begin: Any, tmp_path: Path) -> None:
    done = tmp_path / "done"
    live = begin(errand=errand_that_makes(done))
    for text in ("done ", "done done "):
        assert live.link.run_errand()
        wait_for(lambda text=text: done.exists() and done.read_text() == text)
    wait_for(lambda: len(gateways(live.link)) == 1)  # none is left as a zombie


def test_an_errand_is_run_when_a_loop_asks_with_its_last_breath(
    runtime: RuntimeDirectory, tmp_path: Path
) -> None:
    done = tmp_path / "done"
    link = GatewayLink(runtime, errand=errand_that_makes(done))
    link.wait_until_open()
    assert link.run_errand()
    link.close()
    wait_for(done.exists)


def test_an_errand_that_cannot_be_run_harms_nobody(begin: Any, runtime: RuntimeDirectory) -> None:
    live = begin(errand=("/not/there",))
    assert live.link.run_errand()
    time.sleep(0.3)
    with CommandClient(runtime.commands) as client:
        assert client.status()
    assert len(gateways(live.link)) == 1
