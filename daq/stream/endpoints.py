"""Where a loop can be reached: local sockets, guarded by a directory, and TCP, by CURVE keys.

A robot is named by its runtime directory or by an address `tcp://HOST:PORT`: commands go to PORT,
samples come from PORT + 1. One socket may listen locally without keys and on TCP with them: ZeroMQ
takes over a socket's options when an endpoint is bound.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import zmq

from daq.errors import ConfigError
from daq.stream.errors import BindError
from daq.stream.keys import Keys
from daq.system.runtime_directory import RuntimeDirectory, runtime_directory

Socket: TypeAlias = "zmq.Socket[Any]"
Where: TypeAlias = str | Path | RuntimeDirectory | None
ZAP_DOMAIN = b"armature"
_TCP = re.compile(r"tcp://(?P<host>\[[0-9A-Fa-f:.%\w]+\]|[^:/\[\]]+):(?P<port>[0-9]{1,5})\Z")
_LOCAL = ("ipc://", "inproc://")
_WILDCARDS = ("*", "0.0.0.0", "[::]")
_SOCKET_MODE = 0o660
_HANDSHAKE_MS = 3000


class RobotEndpoints(NamedTuple):
    """The two sockets of a loop."""

    commands: str
    stream: str


def robot_endpoints(where: Where = None) -> RobotEndpoints:
    """Return the sockets of a robot, by its runtime directory or address `tcp://HOST:PORT`.

    Raises:
        ConfigError: The directory is not there or open to others, or it is not such an address.
    """
    if isinstance(where, str) and where.startswith("tcp://"):
        host, port = _split(where)
        return RobotEndpoints(where, f"tcp://{host}:{port + 1}")
    if not isinstance(where, RuntimeDirectory):
        where = runtime_directory(None if where is None else Path(where))
    return RobotEndpoints(where.commands, where.stream)


def check_endpoint(endpoint: str, keys: Keys | None) -> None:
    """Make sure that nobody gets a robot's sockets who should not.

    Raises:
        ConfigError: TCP without keys, an address that means every network, or another transport.
    """
    if endpoint.startswith(_LOCAL):
        return
    host, _ = _split(endpoint)
    problems = []
    if host in _WILDCARDS:
        problems.append(
            f"{host} is every network of this computer: name one address of it, or a network "
            "device (tcp://eth0:5555)"
        )
    if keys is None:
        problems.append(
            "TCP needs keys, or anyone on the network could command the robot: give --keys DIR, "
            "see `armature keys --help`"
        )
    if problems:
        raise ConfigError(endpoint, problems)


def bind(socket: Socket, endpoints: Sequence[str], keys: Keys | None) -> None:
    """Bind a server's socket, first where no keys are needed.

    With keys there must be a `daq.stream.gateway.access.Access` in the same context: without one,
    nobody is let in.

    Raises:
        ConfigError: An endpoint is refused by `check_endpoint`; nothing was bound then.
        BindError: The system refuses one.
    """
    for endpoint in endpoints:
        check_endpoint(endpoint, keys)
    # A client that connects and then says nothing does not keep a file open for long.
    socket.handshake_ivl = _HANDSHAKE_MS
    for endpoint in sorted(endpoints, key=lambda endpoint: not endpoint.startswith(_LOCAL)):
        if not endpoint.startswith(_LOCAL) and keys is not None:
            _set_tcp_options(socket)
            socket.curve_server = True
            socket.curve_secretkey = keys.secret_key
            socket.zap_domain = ZAP_DOMAIN
            # Closed rather than open to all when the one who decides is missing.
            socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)
        try:
            socket.bind(endpoint)
        except zmq.ZMQError as error:
            raise BindError(
                f"{endpoint}: cannot be opened: {error.strerror}", code="not-opened"
            ) from error
        if endpoint.startswith("ipc://"):
            # The directory says who may enter; the socket itself must be writable for its group.
            os.chmod(endpoint.removeprefix("ipc://"), _SOCKET_MODE)


def connect(socket: Socket, endpoint: str, keys: Keys | None) -> None:
    """Connect a client's socket.

    Raises:
        ConfigError: The endpoint is refused by `check_endpoint`, or the keys name no robot.
    """
    check_endpoint(endpoint, keys)
    if not endpoint.startswith(_LOCAL) and keys is not None:
        _set_tcp_options(socket)
        socket.curve_publickey = keys.public_key
        socket.curve_secretkey = keys.secret_key
        socket.curve_serverkey = keys.robot_key
    try:
        socket.connect(endpoint)
    except zmq.ZMQError as error:
        raise ConfigError(endpoint, [f"cannot be used: {error.strerror}"]) from error


def how_to_reach(endpoint: str) -> str:
    """Return what to look at when nobody answers."""
    if endpoint.startswith(_LOCAL):
        return "is the loop running? See `armature loop --help`"
    return "is the loop running, is the address right, and is our key allowed (`armature keys`)?"


def _set_tcp_options(socket: Socket) -> None:
    socket.ipv6 = True
    # A computer that was switched off is noticed, and what waits for it dropped.
    socket.tcp_keepalive = 1
    socket.tcp_keepalive_idle = 30


def _split(endpoint: str) -> tuple[str, int]:
    match = _TCP.match(endpoint)
    if match is None or not 1 <= int(match["port"]) <= 65534:
        problem = "expected a directory or tcp://HOST:PORT with a port from 1 to 65534"
        raise ConfigError(endpoint, [problem])
    return match["host"], int(match["port"])
