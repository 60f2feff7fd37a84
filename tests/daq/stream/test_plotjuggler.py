"""The stream as PlotJuggler's ZeroMQ plugin reads it."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest
import zmq

from daq.stream.errors import BindError
from daq.stream.gateway.plotjuggler import PlotJugglerStream


def test_plotjuggler_reads_it(context: zmq.Context[Any], address: str) -> None:
    stream = PlotJugglerStream(context, int(address.rpartition(":")[2]))
    reader = context.socket(zmq.SUB)
    reader.subscribe(b"")
    reader.connect(address)
    values = {"J1/position_rad": 0.25, "J1/is_homed": True, "state": 3}
    deadline = time.monotonic() + 30.0
    while not reader.poll(10):
        stream.send(b"1234.567890", msgspec.msgpack.encode(values))
        assert time.monotonic() < deadline

    topic, payload, stamp = reader.recv_multipart()

    assert topic == b"armature"
    assert msgspec.msgpack.decode(payload) == values
    assert stamp == b"1234.567890"


def test_port_is_taken(context: zmq.Context[Any], address: str) -> None:
    port = int(address.rpartition(":")[2])
    _first = PlotJugglerStream(context, port)

    with pytest.raises(BindError) as refused:
        PlotJugglerStream(context, port)
    assert refused.value.code == "not-opened"
    assert f"127.0.0.1:{port}" in str(refused.value)
