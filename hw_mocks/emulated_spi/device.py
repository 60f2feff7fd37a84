"""One emulated device: its name, its socket, its settings, its next reply."""

from __future__ import annotations

import errno
import os
import re
import socket
import stat
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Final

from hw_mocks.emulated_spi.dma_buffer import DmaBuffer
from hw_mocks.errors import EmulatedDeviceError

DEFAULT_BITS_PER_WORD: Final = 8
DEFAULT_SPEED_HZ: Final = 125_000_000  # spi-max-frequency of a Raspberry Pi's spidev nodes
CONNECTIONS_MAX: Final = 256
_MODE_MASK: Final = (1 << 17) - 1  # SPI_MODE_USER_MASK
_MAX_BITS_PER_WORD: Final = 32
_MAX_SOCKET_PATH_BYTES: Final = 107
_NAME: Final = re.compile(r"/dev/(spidev(?:0|[1-9]\d{0,4})\.(?:0|[1-9]\d{0,4}))")


class Setting(IntEnum):
    """What a program may set, by the numbers of the packets."""

    MODE = 0
    BITS_PER_WORD = 1
    SPEED_HZ = 2


@dataclass(slots=True, eq=False)
class Device:
    """A device as its server keeps it."""

    name: str
    path: str
    """Of its socket."""
    listener: socket.socket | None = None
    """None while the device is gone."""
    connections: set[socket.socket] = field(default_factory=set)
    mode: int = 0
    bits_per_word: int = DEFAULT_BITS_PER_WORD
    speed_hz: int = DEFAULT_SPEED_HZ
    buffer: DmaBuffer | None = None
    reply: bytes | None = None
    """What the next window gets, if the board knows already."""
    is_at_work: bool = True
    """Whether the board has yet to make its next reply."""
    ready_s: float = 0.0
    """Since when it has."""

    @property
    def is_plain(self) -> bool:
        """Whether it is set to what a program finds: mode 0, words of 8 bits."""
        return self.mode == 0 and self.bits_per_word == DEFAULT_BITS_PER_WORD

    def value_of(self, setting: Setting) -> int:
        """Return a setting as it is now."""
        return (self.mode, self.bits_per_word, self.speed_hz)[setting]

    def change(self, setting: int, value: int) -> int:
        """Change a setting as the kernel would; return an errno (0 = none)."""
        if setting == Setting.MODE and value & ~_MODE_MASK == 0:
            self.mode = value
        elif setting == Setting.BITS_PER_WORD and value <= _MAX_BITS_PER_WORD:
            self.bits_per_word = value or DEFAULT_BITS_PER_WORD
        elif setting == Setting.SPEED_HZ and value > 0:
            self.speed_hz = value
        else:
            return errno.EINVAL
        return 0

    def listen(self) -> socket.socket:
        """Make the device appear, with fresh settings.

        Raises:
            EmulatedDeviceError: Another server answers there.
        """
        self.listener = _listen(self.path)
        self.mode = 0
        self.bits_per_word = DEFAULT_BITS_PER_WORD
        self.speed_hz = DEFAULT_SPEED_HZ
        return self.listener


def is_whole_words(length: int, bits_per_word: int) -> bool:
    """Whether the kernel would accept so many bytes of words of this size."""
    if bits_per_word > _MAX_BITS_PER_WORD:
        return False
    word_bytes = 1 if bits_per_word <= 8 else 2 if bits_per_word <= 16 else 4
    return length % word_bytes == 0


def socket_path(directory: Path, device: str) -> str:
    """Return where the socket of a device is.

    Raises:
        EmulatedDeviceError: The name is not that of an SPI device, or the path is too long.
    """
    match = _NAME.fullmatch(device)
    if match is None:
        problem = f"{device!r} is not an SPI device; expected e.g. /dev/spidev0.0"
        raise EmulatedDeviceError(problem, code="not-a-device")
    path = str(directory / match[1])
    length = len(os.fsencode(path))
    if length > _MAX_SOCKET_PATH_BYTES:
        raise EmulatedDeviceError(
            f"{path}: {length} bytes, a socket's path has at most {_MAX_SOCKET_PATH_BYTES}; "
            "use a shorter directory",
            code="long-path",
        )
    return path


def check_private(directory: Path) -> None:
    """Make the directory if need be.

    Raises:
        EmulatedDeviceError: Others may enter it.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = directory.stat()
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise EmulatedDeviceError(
            f"{directory} must be yours alone: it belongs to user {status.st_uid} with mode "
            f"{stat.S_IMODE(status.st_mode):o}; use a fresh directory of mode 700",
            code="not-private",
        )


def _listen(path: str) -> socket.socket:
    """Listen on a path, in place of a socket that a killed server left behind."""
    if Path(path).is_socket():
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
            if probe.connect_ex(path) != errno.ECONNREFUSED:
                raise EmulatedDeviceError(f"{path}: another server answers there", code="in-use")
        Path(path).unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
    try:
        listener.bind(path)
        os.chmod(path, 0o660)  # what the shim shows as the node's mode
        listener.listen(CONNECTIONS_MAX)
    except BaseException:
        listener.close()
        raise
    return listener
