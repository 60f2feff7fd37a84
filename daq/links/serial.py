"""RS-485 through a serial port and the `pyserial` package: for the bench, from a laptop.

The board answers each valid command with one reply. Whatever else is on the line (garbage, the end
of a reply that came too late, half a frame) is skipped: a reply is taken only where header, length
and checksum agree.
"""

from __future__ import annotations

import errno
import math
import termios
import time
from collections.abc import Callable
from typing import Any

from daq.errors import DeviceBusyError, DeviceGoneError, DeviceIoError, TransportError
from daq.links.failures import transport_error
from firmware_protocol.codec import FrameCodec
from firmware_protocol.fields import Framing
from firmware_protocol.frame_finder import FrameFinder
from firmware_protocol.values import ReplyValues

DEFAULT_REPLY_TIMEOUT_S = 0.02


class SerialLink:
    """Exchanges frames with the board on one serial port.

    The baud rate must be what the board is set to; the codec finds replies in the stream.

    Raises:
        TransportError: The port cannot be opened; the subclass says why.
    """

    framing = Framing.RS485
    clock_hz = math.inf

    def __init__(
        self,
        device: str,
        *,
        baud: int,
        reply: FrameCodec[ReplyValues],
        reply_timeout_s: float = DEFAULT_REPLY_TIMEOUT_S,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = device
        self.resynchronised = 0
        self._finder = FrameFinder(reply)
        self._frame_size = reply.size
        self._timeout_s = reply_timeout_s
        self._now_s = now_s
        self._serial = _open(device, baud)

    def fileno(self) -> int:
        """Return the descriptor of the opened port."""
        return int(self._serial.fileno())

    def exchange(self, frame: bytes) -> bytes:
        """Send a frame and wait for the reply.

        Returns:
            The reply; when none was sound in time, what came instead, at most a frame of it.

        Raises:
            TransportError: The port failed or was unplugged.
        """
        # Whatever is still on the line answers an earlier command.
        self._discard()
        received = bytearray()
        skipped_before = self._finder.skipped
        try:
            self._serial.write(frame)
            deadline = self._now_s() + self._timeout_s
            while (reply := self._finder.take()) is None:
                remaining = deadline - self._now_s()
                if remaining <= 0.0:
                    self._finder.clear()
                    return bytes(received[: self._frame_size])
                self._serial.timeout = remaining
                data = self._serial.read(1) + self._serial.read(self._serial.in_waiting)
                received += data[: self._frame_size]
                self._finder.feed(data)
        except OSError as error:  # pyserial's SerialException is one
            raise self._gone(error) from error
        self.resynchronised += self._finder.skipped > skipped_before
        return reply

    def realign(self, missing: int) -> None:
        """Discard what is left on the line; nothing else is out of step there."""
        self._discard()

    def close(self) -> None:
        """Close the port."""
        self._serial.close()

    def _discard(self) -> None:
        leftover = bool(self._finder.clear())
        try:
            leftover |= self._serial.in_waiting > 0
            self._serial.reset_input_buffer()
        except (OSError, termios.error) as error:
            raise self._gone(error) from error
        self.resynchronised += leftover

    def _gone(self, error: Exception) -> TransportError:
        return DeviceGoneError(self.name, f"the port failed, was it unplugged? ({error})")


def _open(device: str, baud: int) -> Any:
    try:
        import serial  # noqa: PLC0415 - a robot on SPI needs no pyserial
    except ModuleNotFoundError as error:
        raise TransportError(
            device,
            "the pyserial package is missing: pip install '.[robot]' in armature's folder",
            code="package-missing",
        ) from error
    try:
        return serial.Serial(device, baudrate=baud, exclusive=True, write_timeout=0.1)
    except ValueError as error:
        raise DeviceIoError(device, f"cannot be set to {baud} baud: {error}") from error
    except OSError as error:
        if error.errno == errno.EAGAIN:  # its lock is taken
            raise DeviceBusyError(device, "another program has it open") from error
        raise transport_error(device, error) from error
