"""A subscription to a loop's samples as arrays in SI units, for live views and your own scripts.

    from daq.stream.subscriber import Subscriber

    with Subscriber() as robot:
        for batch in robot:
            angles_rad = batch["joint_position_rad"][-1].round(3).tolist()
            print(f"{batch.t_s[-1]:8.3f} s", dict(zip(robot.joint_names, angles_rad)))
            if robot.missed:
                print("too slow, missed", robot.missed)

Columns have the names of the recording's datasets; rows are samples. It only listens: whatever a
script does, the loop goes on. Commands are given by `daq.stream.command_client`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import zmq

from daq.samples.batches import (
    BATCH_TOPIC,
    SESSION_TOPIC,
    BatchError,
    Header,
    Session,
    decode_header,
    decode_session,
)
from daq.samples.columns import ColumnDecoder
from daq.stream.endpoints import Where, connect, how_to_reach, robot_endpoints
from daq.stream.errors import StreamMismatchError, StreamTimeoutError
from daq.stream.keys import Keys
from firmware_protocol.fingerprint import fingerprint
from firmware_protocol.profiles import PROFILES

Array = np.ndarray[Any, np.dtype[Any]]

TIMEOUT_S = 5.0
"""A loop publishes every 20 ms, and what a new subscriber must know every second."""
_QUEUE_BATCHES = 1000


@dataclass(frozen=True, slots=True)
class LiveBatch:
    """Consecutive samples.

    Attributes:
        header: Sequence number of the first one, both clocks, events.
        session: The run of the loop they belong to.
        columns: Arrays of SI values by name; the first axis is the sample.
    """

    header: Header
    session: Session
    columns: Mapping[str, Array]

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    def __len__(self) -> int:
        return self.header.count

    @property
    def t_s(self) -> Array:
        """Time of each sample since the loop started, monotonic."""
        seconds: Array = (self.columns["t_ns"] - self.session.start_t_ns) * 1e-9
        return seconds


class Subscriber:
    """A subscription to a loop's samples.

    The first batch comes within about a second. When the loop is started again, its new session is
    followed automatically.

    Args:
        where: The robot's runtime directory (by default the usual one), its address
            `tcp://HOST:PORT` as for `armature send`, or exactly one `ipc://` endpoint.
        keys: Ours, and the robot's public one; needed for `tcp://`.
        timeout_s: How long to wait for a batch when iterating.

    Raises:
        ConfigError: There is no such directory, or the address or keys cannot be used.

    Attributes:
        missed: Samples that were published and did not come: this program was too slow, or began
            to listen again. Counted within sessions, from the first batch of each.
        session: The loop's run, None before anything came.
    """

    def __init__(
        self, where: Where = None, *, keys: Keys | None = None, timeout_s: float = TIMEOUT_S
    ) -> None:
        is_exact = isinstance(where, str) and where.startswith("ipc://")
        self.endpoint = str(where) if is_exact else robot_endpoints(where).stream
        self.timeout_s = timeout_s
        self.missed = 0
        self.session: Session | None = None
        self._decoder: ColumnDecoder | None = None
        self._next_seq: int | None = None
        self._context: zmq.Context[Any] = zmq.Context()
        self._socket = self._context.socket(zmq.SUB)
        self._socket.linger = 0
        self._socket.rcvhwm = _QUEUE_BATCHES
        self._socket.subscribe(BATCH_TOPIC)
        self._socket.subscribe(SESSION_TOPIC)
        try:
            connect(self._socket, self.endpoint, keys)
        except BaseException:
            self.close()
            raise

    @property
    def joint_names(self) -> tuple[str, ...]:
        """In the order of the arrays' columns; empty before anything came."""
        return tuple(joint.name for joint in self._decoder.robot.joints) if self._decoder else ()

    def receive(self, timeout_s: float | None = None) -> LiveBatch:
        """Return the next batch; waits as long as given at the beginning, unless told otherwise.

        Raises:
            StreamTimeoutError: Nothing came: there is no loop, or it does not know our key.
            StreamMismatchError: What came is of another version.
        """
        timeout_s = self.timeout_s if timeout_s is None else timeout_s
        deadline = time.monotonic() + timeout_s
        while True:
            topic, *parts = self._receive_parts(deadline, timeout_s)
            if topic == SESSION_TOPIC and len(parts) == 1:
                self._follow(parts[0])
            elif topic == BATCH_TOPIC and len(parts) == 2:
                batch = self._decode(*parts)
                if batch is not None:
                    return batch

    def wait_for_session(self, timeout_s: float | None = None) -> Session:
        """Return what the loop is running, robot file included, as soon as it is known.

        Raises:
            StreamTimeoutError: Nothing came.
            StreamMismatchError: What came is of another version.
        """
        timeout_s = self.timeout_s if timeout_s is None else timeout_s
        deadline = time.monotonic() + timeout_s
        while self.session is None:
            topic, *parts = self._receive_parts(deadline, timeout_s)
            if topic == SESSION_TOPIC and len(parts) == 1:
                self._follow(parts[0])
        return self.session

    def __iter__(self) -> Iterator[LiveBatch]:
        while True:
            yield self.receive()

    def close(self) -> None:
        """Listen no more."""
        self._socket.close(linger=0)
        self._context.term()

    def __enter__(self) -> Subscriber:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _receive_parts(self, deadline: float, timeout_s: float) -> list[bytes]:
        remaining_ms = max(0.0, deadline - time.monotonic()) * 1000.0
        if not self._socket.poll(round(remaining_ms)):
            raise StreamTimeoutError(
                f"{self.endpoint}: nothing received for {timeout_s:g} s: "
                f"{how_to_reach(self.endpoint)}",
                code="nothing-received",
            )
        return self._socket.recv_multipart()

    def _follow(self, data: bytes) -> None:
        """Take note of the session; only a new one costs time."""
        try:
            session = decode_session(data)
        except BatchError as error:
            raise StreamMismatchError(f"{self.endpoint}: {error}", code=error.code) from error
        if session == self.session:
            return
        _check_fingerprint(self.endpoint, session)
        self._decoder = ColumnDecoder(session)
        self.session = session
        self._next_seq = None

    def _decode(self, header_data: bytes, payload: bytes) -> LiveBatch | None:
        """Return a batch; None before its session is known, and for one that came before."""
        try:
            header = decode_header(header_data)
        except BatchError as error:
            raise StreamMismatchError(f"{self.endpoint}: {error}", code=error.code) from error
        session, decoder = self.session, self._decoder
        if session is None or decoder is None or header.session != session.session:
            return None
        expected = header.seq if self._next_seq is None else self._next_seq
        if header.seq < expected:
            return None
        size = decoder.layout.size
        is_ours = header.fingerprint == session.fingerprint
        if not is_ours or len(payload) != header.count * size:
            raise StreamMismatchError(
                f"{self.endpoint}: batch {header.seq} has fingerprint {header.fingerprint} and "
                f"{len(payload)} bytes, expected {session.fingerprint} and {header.count} samples "
                f"of {size} bytes",
                code="wrong-size" if is_ours else "other-fingerprint",
            )
        self.missed += header.seq - expected
        self._next_seq = header.seq + header.count
        return LiveBatch(header, session, decoder.decode(decoder.layout.view(payload)))


def _check_fingerprint(endpoint: str, session: Session) -> None:
    """Make sure that both sides mean the same by a frame."""
    unknown = [board.profile for board in session.boards if board.profile not in PROFILES]
    ours = "+".join(fingerprint(PROFILES[b.profile]) for b in session.boards if not unknown)
    if unknown or ours != session.fingerprint:
        raise StreamMismatchError(
            f"{endpoint}: the loop's boards have the wire format {session.fingerprint} "
            f"({', '.join(board.profile for board in session.boards)}), here it is "
            f"{ours or 'unknown'}: use the same version of armature on both sides",
            code="other-wire-format",
        )
