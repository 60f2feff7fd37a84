"""The server of the emulated /dev/spidev devices: the board's side of them.

Each device is a SOCK_SEQPACKET socket in a private directory; programs that preload the shim
connect to it. Every chip-select window arrives as one packet and is answered at once by a callback.
Word size, mode and speed are kept here, per device, as the kernel keeps them. A board that has its
next reply ready before it is asked lays it open: then a window need not wait for this process.

The server runs in the thread that calls `poll` and knows nothing of frames, CRCs or motors.
Peers are not trusted: whatever they send is bounded and checked.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Self

import msgspec

from hw_mocks.emulated_spi.device import (
    CONNECTIONS_MAX,
    DEFAULT_BITS_PER_WORD,
    DEFAULT_SPEED_HZ,
    Device,
    Setting,
    check_private,
    is_whole_words,
    socket_path,
)
from hw_mocks.emulated_spi.dma_buffer import DmaBuffer, DmaWindow
from hw_mocks.emulated_spi.introduction import Introduction
from hw_mocks.emulated_spi.packets import (
    MAGIC,
    PACKET_MAX_BYTES,
    REPLY,
    REQUEST,
    VERSION,
    Operation,
)

# How long to look for more after a transfer: until a loop has asked its next board, or for as long
# as a program comes back that soon.
_SPIN_S: Final = 30e-6
_RAPID_S: Final = 400e-6


class SpiTransfer(NamedTuple):
    """What a board sees of one chip-select window; `mode` has the bits of `linux/spi/spi.h`."""

    device: str
    tx: bytes
    mode: int
    bits_per_word: int
    speed_hz: int
    started_ns: int
    reply: bytes | None = None
    """The prepared reply, if the program has taken it."""


class SpidevServer:
    """Serves emulated SPI devices from the thread that calls `poll`.

    Args:
        directory: Where the sockets go; made if missing, and private (mode 0700, the caller's own).
        devices: The nodes to emulate, for example `/dev/spidev0.0`.
        answer: Called once per chip-select window. Returns the bytes the board clocks back (fewer
            than it was sent: the transfer is cut short there), or an errno with which it fails.
        prepare: Called before the first and after each window, when the program has its bytes: the
            board works on what it got, and returns the reply that the next window of the same
            length will get, if that is known. Such a window needs no answer; `answer` hears of it
            at the next `poll`, and what it returns is ignored.
        speed_max_hz: Faster windows get no prepared reply.
        mark: What the devices say of the robot behind them.

    Raises:
        EmulatedDeviceError: The directory is not private, its path is too long for a socket,
            another server runs in it, or a name is not that of an SPI device.
    """

    def __init__(
        self,
        directory: Path,
        devices: Sequence[str],
        answer: Callable[[SpiTransfer], bytes | int],
        *,
        prepare: Callable[[str], bytes | None] | None = None,
        speed_max_hz: int = DEFAULT_SPEED_HZ,
        mark: str = "",
    ) -> None:
        self._answer = answer
        self._prepare = prepare
        self._speed_max_hz = speed_max_hz
        self._mark = mark
        self._transfers = 0
        self._spin_until_s = 0.0
        self._listening: dict[int, Device] = {}
        self._connected: dict[int, tuple[socket.socket, Device]] = {}
        self._buffers: list[tuple[Device, DmaBuffer]] = []
        self._devices = {
            name: Device(name, socket_path(directory.resolve(), name)) for name in devices
        }
        check_private(directory)
        self._epoll = select.epoll()
        try:
            for name, device in self._devices.items():
                if prepare is not None:
                    device.buffer = DmaBuffer(Path(f"{device.path}.dma"))
                    self._buffers.append((device, device.buffer))
                self.restore(name)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def poll(self, timeout_s: float) -> int:
        """Wait for programs, answer everything they ask, return how many transfers there were.

        Any activity ends the wait, also a program that opens a device; 0 s only looks.
        """
        before = self._transfers
        self._work()
        is_idle = self._transfers == before
        events = self._wait(timeout_s) if is_idle else self._epoll.poll(0)
        for descriptor, _ in events:
            if descriptor in self._connected:
                self._serve(*self._connected[descriptor])
            elif descriptor in self._listening:
                self._accept(self._listening[descriptor])
        if is_idle or events:
            self._work()
        return self._transfers - before

    def remove(self, device: str) -> None:
        """Take a device away, as if its driver were unbound. Does nothing if it is gone already.

        Opening it now gives ENOENT, transfers of who has it open ENODEV.
        """
        gone = self._devices[device]
        self._withdraw(gone)
        if gone.listener is not None:
            Path(gone.path).unlink(missing_ok=True)
            del self._listening[gone.listener.fileno()]
            gone.listener.close()
            gone.listener = None
        for connection in tuple(gone.connections):
            self._disconnect(connection, gone)

    def restore(self, device: str) -> None:
        """Bring a device back with fresh settings. Does nothing if it is there.

        Raises:
            EmulatedDeviceError: Another server has it.
        """
        back = self._devices[device]
        if back.listener is not None:
            return
        listener = back.listen()
        back.is_at_work = True
        self._listening[listener.fileno()] = back
        self._epoll.register(listener, select.EPOLLIN)

    def prepare_again(self, device: str) -> None:
        """Have the prepared reply made anew at the next `poll`: what it may be has changed."""
        found = self._devices[device]
        self._withdraw(found)
        found.is_at_work = True

    def close(self) -> None:
        """Remove every device and free the sockets; may be called twice."""
        for name in self._devices:
            self.remove(name)
        for _, buffer in self._buffers:
            buffer.close()
        self._epoll.close()

    def _wait(self, timeout_s: float) -> list[tuple[int, int]]:
        # After a transfer the next is likely a few µs away, and waking up for it costs more than
        # looking for it. Idle means asleep.
        now_s = time.monotonic()
        end_s = min(self._spin_until_s, now_s + timeout_s)
        while not (events := self._epoll.poll(0)) and time.monotonic() < end_s:
            if any(buffer.is_used for _, buffer in self._buffers):
                return []
            os.sched_yield()
        if events or now_s < self._spin_until_s:
            return events
        # epoll counts whole milliseconds and rounds up. select does not; it costs 2 µs more.
        whole_ms, rest_ms = divmod(timeout_s * 1e3, 1.0)
        events = self._epoll.poll(whole_ms / 1e3) if whole_ms else []
        if not events:
            if rest_ms:
                select.select((self._epoll,), (), (), rest_ms / 1e3)
            events = self._epoll.poll(0)
        return events

    def _work(self) -> None:
        """Hear of windows that took a prepared reply, and have the next ones prepared."""
        for device, buffer in self._buffers:
            if buffer.is_used:
                self._pass_on(device, buffer.take())
        for device in self._devices.values():
            if device.is_at_work:
                self._finish_work(device)
                self._lay_open(device)

    def _pass_on(self, device: Device, window: DmaWindow | None) -> None:
        """Tell the board of a window that took its prepared reply."""
        if window is not None:
            started_ns = min(window.started_ns, time.monotonic_ns())
            self._ask(
                device,
                SpiTransfer(
                    device.name,
                    window.sent,
                    device.mode,
                    DEFAULT_BITS_PER_WORD,
                    window.speed_hz,
                    started_ns,
                    device.reply,
                ),
            )

    def _withdraw(self, device: Device) -> None:
        """Let no program take the prepared reply, unless one has it already."""
        if device.buffer is not None:
            self._pass_on(device, device.buffer.retract())

    def _finish_work(self, device: Device) -> None:
        """Have the board make its next reply, unless it has."""
        if not device.is_at_work:
            return
        if self._prepare is not None:
            device.reply = self._prepare(device.name)
        device.is_at_work = False
        device.ready_s = time.monotonic()

    def _lay_open(self, device: Device) -> None:
        """Show programs the prepared reply, if the device is set to what boards understand."""
        if device.buffer is None or device.is_at_work:
            return
        is_visible = device.listener is not None and device.is_plain and not device.buffer.is_spoilt
        if device.reply is not None and is_visible:
            device.buffer.offer(
                device.reply, device_speed_hz=device.speed_hz, speed_max_hz=self._speed_max_hz
            )
        else:
            device.buffer.refuse()

    def _accept(self, device: Device) -> None:
        if device.listener is None:
            return
        try:
            connection, _ = device.listener.accept()
        except OSError:  # the program is gone before we looked, or we are out of descriptors
            return
        if len(self._connected) >= CONNECTIONS_MAX:
            connection.close()
            return
        connection.setblocking(False)
        device.connections.add(connection)
        self._connected[connection.fileno()] = connection, device
        self._epoll.register(connection, select.EPOLLIN)

    def _disconnect(self, connection: socket.socket, device: Device) -> None:
        if connection not in device.connections:
            return
        device.connections.remove(connection)
        del self._connected[connection.fileno()]
        connection.close()
        if not device.connections:
            self._withdraw(device)
            device.speed_hz = DEFAULT_SPEED_HZ  # spidev forgets the speed, and only that
            self._lay_open(device)

    def _serve(self, connection: socket.socket, device: Device) -> None:
        """Answer one packet."""
        try:
            packet = connection.recv(PACKET_MAX_BYTES + 1)
        except BlockingIOError:
            return
        except OSError:
            packet = b""
        if not 0 < len(packet) <= PACKET_MAX_BYTES:
            self._disconnect(connection, device)  # its end, or nothing the shim would send
            return
        if len(packet) < REQUEST.size or not packet.startswith(MAGIC):
            # A write() that the shim never saw, because libc made it (stdio, a shell's echo).
            self._transfer(device, packet, 0, 0)
            return
        _, version, operation, setting, bits, sequence, value = REQUEST.unpack_from(packet)
        error, data = 0, b""
        if version != VERSION:
            error = errno.EPROTO
        elif operation == Operation.TRANSFER and len(packet) > REQUEST.size:
            error, data = self._transfer(device, packet[REQUEST.size :], bits, value)
        elif operation == Operation.SET:
            self._withdraw(device)
            error = device.change(setting, value)
            self._lay_open(device)
        elif operation == Operation.GET and setting < len(Setting):
            value = device.value_of(Setting(setting))
        elif operation == Operation.INTRODUCE:
            data = msgspec.json.encode(Introduction(device.name, self._mark))
        else:
            error = errno.EINVAL
        try:
            connection.send(REPLY.pack(MAGIC, VERSION, sequence, error, value) + data)
        except OSError:  # gone, or one who asks without ever reading the answers
            self._disconnect(connection, device)

    def _transfer(
        self, device: Device, tx: bytes, bits_per_word: int, speed_hz: int
    ) -> tuple[int, bytes]:
        """Ask the board; return an errno (0 = none) and what it clocked back."""
        bits_per_word = bits_per_word or device.bits_per_word
        if bits_per_word != DEFAULT_BITS_PER_WORD and not is_whole_words(len(tx), bits_per_word):
            return errno.EINVAL, b""
        self._withdraw(device)
        speed_hz = speed_hz or device.speed_hz
        started_ns = time.monotonic_ns()
        transfer = SpiTransfer(device.name, tx, device.mode, bits_per_word, speed_hz, started_ns)
        result = self._ask(device, transfer)
        return (result, b"") if isinstance(result, int) else (0, result)

    def _ask(self, device: Device, transfer: SpiTransfer) -> bytes | int:
        self._finish_work(device)
        self._transfers += 1
        device.is_at_work = True
        # Stay awake for a program that asks its boards in turn, or one board as fast as it can.
        is_rapid = transfer.started_ns * 1e-9 - device.ready_s < _RAPID_S
        self._spin_until_s = time.monotonic() + (_RAPID_S if is_rapid else _SPIN_S)
        return self._answer(transfer)
