"""A client that gives commands to a loop and waits for its answers.

    with CommandClient(robot_endpoints().commands) as robot:
        robot.ask(Enable())
        print(robot.status().state)

Commands that need it are refused while somebody else holds the lease; `daq.stream.command_lease`
keeps it for a script. Not for use by several threads at once.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import zmq

from daq.errors import ConfigError
from daq.stream.endpoints import connect, how_to_reach
from daq.stream.errors import CommandRefusedError, CommandTimeoutError
from daq.stream.keys import Keys
from daq.stream.messages import (
    Answer,
    AnyCommand,
    LoopStatus,
    PlayBegin,
    PlayRows,
    Refusal,
    Status,
)

if TYPE_CHECKING:
    import numpy as np

TIMEOUT_S = 2.0
CHUNK_BYTES = 32 << 10
"""Rows of a trajectory in one message: few, for the loop checks them all within a cycle."""
_QUEUE = 1000


_encode = msgspec.json.Encoder().encode
_decode_answer = msgspec.json.Decoder(Answer).decode
_decode_status = msgspec.json.Decoder(LoopStatus).decode


class CommandClient:
    """A connection to a loop's command socket.

    Nothing is kept for a loop that is not there: a command that could not be sent in time is not
    carried out later.

    Args:
        endpoint: See `daq.stream.endpoints.robot_endpoints`.
        keys: Ours, and the robot's public one; needed for `tcp://`.

    Raises:
        ConfigError: The endpoint or the keys cannot be used.

    Attributes:
        lease: Token under which commands are given; `daq.stream.command_lease` sets it.
    """

    def __init__(self, endpoint: str, *, keys: Keys | None = None) -> None:
        self.endpoint = endpoint
        self.keys = keys
        self.lease = ""
        self._last_id = 0
        self._context: zmq.Context[Any] = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.linger = 0
        self._socket.sndhwm = self._socket.rcvhwm = _QUEUE
        # Only to a loop that is there.
        self._socket.immediate = True
        try:
            connect(self._socket, endpoint, keys)
        except BaseException:
            self.close()
            raise

    def ask(self, command: AnyCommand, payload: bytes = b"", timeout_s: float = TIMEOUT_S) -> Any:
        """Give a command, with its binary part if it has one, and wait for its answer.

        Returns a `LoopStatus` for `Status`, else plain JSON values.

        Raises:
            CommandRefusedError: The loop refuses; nothing has changed.
            CommandTimeoutError: Nobody answers. On the robot's own computer it is not carried out
                any more then (`Stop` is).
        """
        self._last_id += 1
        deadline = time.monotonic() + timeout_s
        if not self._wait(zmq.POLLOUT, deadline) or not self._send(command, payload, deadline):
            raise self._timeout(timeout_s, "was not sent", code="not-sent")
        while self._wait(zmq.POLLIN, deadline):
            answer = _decode_answer(self._socket.recv_multipart()[-1])
            if answer.id != self._last_id:
                continue  # too late, or to a command of `tell`
            if not answer.ok:
                refusal = answer.error or Refusal(code="failed", message="")
                raise CommandRefusedError(refusal.code, refusal.message, refusal.held_by)
            if isinstance(command, Status):
                return _decode_status(answer.result)
            return msgspec.json.decode(answer.result)
        raise self._timeout(timeout_s, "was not answered", code="no-answer")

    def status(self, timeout_s: float = TIMEOUT_S) -> LoopStatus:
        """Return the status of the loop.

        Raises:
            CommandTimeoutError: Nobody answers.
        """
        status: LoopStatus = self.ask(Status(), timeout_s=timeout_s)
        return status

    def tell(self, command: AnyCommand) -> bool:
        """Give a command and wait for nothing; return whether it is on its way."""
        with contextlib.suppress(zmq.Again):  # throw away the answers to earlier ones
            while True:
                self._socket.recv_multipart(zmq.NOBLOCK)
        self._last_id += 1
        return self._send(command, b"", time.monotonic() + TIMEOUT_S)

    def send_trajectory(
        self,
        rows: np.ndarray[Any, np.dtype[np.float64]],
        has_torque: bool = False,
        *,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Hand over a trajectory; `PlayStart` then plays it.

        Args:
            rows: Shape (samples, 2 or 3 times joints): q, dq and perhaps torque at the loop's
                rate.
            has_torque: Whether rows carry torques.
            progress: Called with the number of rows that are there.

        Raises:
            ConfigError: It is not such a table.
            CommandRefusedError: It crosses a limit, for example; nothing will be played.
            CommandTimeoutError: Nobody answers.
        """
        if rows.ndim != 2 or rows.shape[1] == 0 or rows.shape[1] % (3 if has_torque else 2):
            kinds = "q, dq and torque" if has_torque else "q and dq"
            problem = f"shape {rows.shape}, expected (samples, columns) with {kinds} of all joints"
            raise ConfigError("trajectory", [problem])
        rows = rows.astype("<f8", order="C", copy=False)
        self.ask(PlayBegin(rows=len(rows), has_torque=has_torque))
        step = max(1, CHUNK_BYTES // (rows.shape[1] * rows.itemsize))
        for first in range(0, len(rows), step):
            chunk = rows[first : first + step]
            self.ask(PlayRows(first=first), chunk.tobytes())
            if progress is not None:
                progress(first + len(chunk))

    def close(self) -> None:
        """Leave; what was not sent is dropped."""
        self._socket.close(linger=0)
        self._context.term()

    def __enter__(self) -> CommandClient:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _send(self, command: AnyCommand, payload: bytes, deadline: float) -> bool:
        # Another computer's clock says nothing here.
        is_here = self.endpoint.startswith("ipc://")
        expires_ns = max(1, round(deadline * 1e9)) if is_here else 0
        data = _encode(
            msgspec.structs.replace(
                command, id=self._last_id, expires_ns=expires_ns, lease=self.lease
            )
        )
        try:
            self._socket.send_multipart([data, payload] if payload else [data], zmq.NOBLOCK)
        except zmq.Again:
            return False
        return True

    def _wait(self, events: int, deadline: float) -> bool:
        remaining_ms = max(0.0, deadline - time.monotonic()) * 1000.0
        return bool(self._socket.poll(round(remaining_ms), events) & events)

    def _timeout(self, timeout_s: float, what: str, *, code: str) -> CommandTimeoutError:
        return CommandTimeoutError(
            f"{self.endpoint}: the command {what} within {timeout_s:g} s: "
            f"{how_to_reach(self.endpoint)}",
            code=code,
        )
