"""Key files, and who gets in over TCP."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
import zmq

from daq.errors import ConfigError
from daq.stream.command_client import CommandClient
from daq.stream.endpoints import robot_endpoints
from daq.stream.errors import CommandTimeoutError, StreamTimeoutError
from daq.stream.gateway.access import Access
from daq.stream.gateway.command_server import CommandServer
from daq.stream.gateway.publisher import Publisher
from daq.stream.keys import Keys, allow_key, load_keys, make_keys
from daq.stream.messages import Status, Stop
from daq.stream.subscriber import Subscriber
from daq.system.runtime_directory import RuntimeDirectory

PATIENCE_S = 30.0
# Long enough for a connection on this computer, if it were let in at all.
REFUSED_S = 1.0


# --- over TCP -------------------------------------------------------------------------------------


def test_listed_key_may_command_and_subscribe(
    tcp_server: Any, address: str, loop: Any, parties: Any
) -> None:
    keys = load_keys(parties.friend)
    with CommandClient(address, keys=keys) as client:
        client.ask(Stop(), timeout_s=PATIENCE_S)
    with Subscriber(address, keys=keys, timeout_s=PATIENCE_S) as robot:
        assert robot.receive().session.session == "run-1"

    assert loop.told(Stop)


def test_unlisted_key_gets_nothing(tcp_server: Any, address: str, loop: Any, parties: Any) -> None:
    keys = load_keys(parties.stranger)
    with (
        CommandClient(address, keys=keys) as client,
        pytest.raises(CommandTimeoutError) as refused,
    ):
        client.ask(Stop(), timeout_s=REFUSED_S)
    assert "`armature keys`" in str(refused.value)
    with (
        Subscriber(address, keys=keys) as robot,
        pytest.raises(StreamTimeoutError) as unheard,
    ):
        robot.receive(REFUSED_S)
    assert "`armature keys`" in str(unheard.value)

    assert loop.commands == []


@pytest.mark.parametrize("kind", [zmq.DEALER, zmq.REQ, zmq.SUB])
def test_no_key_gets_nothing(
    context: Any, tcp_server: Any, address: str, loop: Any, kind: int
) -> None:
    socket = context.socket(kind)
    if kind == zmq.SUB:
        socket.subscribe(b"")
        socket.connect(robot_endpoints(address).stream)
    else:
        socket.connect(address)
        socket.send(b'{"command": "stop"}')

    assert not socket.poll(1000 * REFUSED_S)
    assert loop.commands == []


def test_client_refuses_a_false_robot(
    serve: Any, address: str, loop: Any, parties: Any, tmp_path: Path
) -> None:
    make_keys(tmp_path / "false", "false")
    allow_key(tmp_path / "false", parties.friend / "friend.pub")
    serve(robot_endpoints(address), loop, load_keys(tmp_path / "false"))

    with (
        CommandClient(address, keys=load_keys(parties.friend)) as client,
        pytest.raises(CommandTimeoutError),
    ):
        client.ask(Stop(), timeout_s=REFUSED_S)
    assert loop.commands == []


def test_nobody_gets_in_when_nobody_decides(
    address: str, loop: Any, parties: Any, polled_server: Any
) -> None:
    server = polled_server(address, curve=load_keys(parties.robot))
    with (
        CommandClient(address, keys=load_keys(parties.friend)) as client,
        pytest.raises(CommandTimeoutError),
    ):
        client.ask(Stop(), timeout_s=REFUSED_S)
    server.poll()

    assert loop.commands == []


def test_one_socket_is_local_without_keys_and_remote_with_them(
    context: Any, runtime: RuntimeDirectory, address: str, parties: Any, polled_server: Any
) -> None:
    keys = load_keys(parties.robot)
    access = Access(context, keys)
    server = polled_server(address, runtime.commands, curve=keys)
    local, remote, naked = (context.socket(zmq.DEALER) for _ in range(3))
    local.connect(runtime.commands)
    naked.connect(address)
    friend = load_keys(parties.friend)
    remote.curve_publickey, remote.curve_secretkey = friend.public_key, friend.secret_key
    remote.curve_serverkey = friend.robot_key
    remote.connect(address)
    for number, socket in enumerate((local, remote, naked)):
        socket.send(b'{"command": "status", "id": %d}' % number)

    for _ in range(1000):
        access.poll()
        server.poll()
        naked.poll(1)

    assert sorted(command.id for command in server.handler.told(Status)) == [0, 1]
    assert local.poll(0)
    assert remote.poll(0)
    assert not naked.poll(0)


def test_tcp_is_refused_without_keys(context: Any, address: str) -> None:
    host, _, port = address.rpartition(":")
    for make, source in (
        (lambda: CommandServer(context, [address]), address),
        (lambda: Publisher(context, [address]), address),
        (lambda: CommandClient(address), address),
        (lambda: Subscriber(address), f"{host}:{int(port) + 1}"),
    ):
        with pytest.raises(ConfigError) as refused:
            make()
        assert refused.value.source == source
        assert "--keys" in refused.value.problems[0]


# --- files ----------------------------------------------------------------------------------------


def test_secret_is_for_its_owner_only(parties: Any) -> None:
    assert stat.S_IMODE((parties.robot / "robot.key").stat().st_mode) == 0o600
    assert stat.S_IMODE((parties.robot / "robot.pub").stat().st_mode) == 0o644
    assert load_keys(parties.robot).secret_key.decode() not in repr(load_keys(parties.robot))
    assert "secret_key" not in (parties.robot / "robot.pub").read_text()


def test_what_is_made_is_read(tmp_path: Path) -> None:
    assert load_keys(make_keys(tmp_path, "robot").directory) == make_again(tmp_path)


def make_again(directory: Path) -> Keys:
    public, secret = (
        (directory / "robot.key").read_text().split(f"{key} = '")[1].split("'")[0].encode()
        for key in ("public_key", "secret_key")
    )
    return Keys("robot", public, secret, {}, directory)


def test_nothing_is_overwritten(parties: Any) -> None:
    before = (parties.robot / "robot.key").read_bytes()
    for name in ("robot", "other"):
        with pytest.raises(ConfigError) as refused:
            make_keys(parties.robot, name)
        assert refused.value.problems[0].startswith("robot.key ")
    with pytest.raises(ConfigError) as refused:
        allow_key(parties.robot, parties.friend / "friend.pub")
    assert refused.value.problems[0].startswith("friend ")

    assert (parties.robot / "robot.key").read_bytes() == before


def test_lone_public_key_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "robot.pub").write_text("mine")

    with pytest.raises(ConfigError) as refused:
        make_keys(tmp_path, "robot")
    assert refused.value.source == str(tmp_path / "robot.pub")
    assert (tmp_path / "robot.pub").read_text() == "mine"


@pytest.mark.parametrize("name", ["", "a/b", "..", "a'b", "x" * 41, "a\n"])
def test_bad_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError) as refused:
        make_keys(tmp_path, name)
    assert refused.value.problems[0].startswith(f"name {name!r}")
    assert not list(tmp_path.iterdir())


def test_secret_that_others_can_read_is_refused(parties: Any) -> None:
    (parties.robot / "robot.key").chmod(0o640)

    with pytest.raises(ConfigError) as refused:
        load_keys(parties.robot)
    (problem,) = refused.value.problems
    assert "640" in problem and f"chmod 600 {parties.robot / 'robot.key'}" in problem


def test_secret_key_is_not_taken_for_a_public_one(parties: Any) -> None:
    with pytest.raises(ConfigError) as refused:
        allow_key(parties.robot, parties.stranger / "stranger.key")
    assert refused.value.source == str(parties.stranger / "stranger.key")
    (problem,) = refused.value.problems
    assert ".pub" in problem


def test_every_problem_is_listed(parties: Any) -> None:
    allowed = parties.robot / "allowed"
    (allowed / "a.pub").write_text("name = 'a'\npublic_key = 'short'\n")
    (allowed / "b.pub").write_bytes(b"\xff")
    (allowed / "c.pub").write_text((allowed / "friend.pub").read_text())
    (allowed / "d.pub").write_text("name = 'd'\nkey = 1\n")

    with pytest.raises(ConfigError) as caught:
        load_keys(parties.robot)

    files = [problem.partition(":")[0] for problem in caught.value.problems]
    assert files == ["a.pub", "b.pub", "d.pub", "d.pub", "friend.pub"]


def test_keys_that_do_not_belong_together(parties: Any) -> None:
    path = parties.robot / "robot.key"
    public = load_keys(parties.robot).public_key.decode()
    path.write_text(path.read_text().replace(public, load_keys(parties.friend).public_key.decode()))

    with pytest.raises(ConfigError) as refused:
        load_keys(parties.robot)
    (problem,) = refused.value.problems
    assert problem.startswith("robot.key: public_key ") and "secret_key" in problem


def test_client_needs_exactly_one_robot(parties: Any, tmp_path: Path) -> None:
    keys = make_keys(tmp_path / "lonely", "lonely")

    with pytest.raises(ConfigError) as refused:
        CommandClient("tcp://127.0.0.1:5555", keys=keys)
    assert f"armature keys allow {tmp_path / 'lonely'}" in refused.value.problems[0]


def test_no_keys_at_all(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        load_keys(tmp_path)
    assert f"armature keys new {tmp_path}" in refused.value.problems[0]
