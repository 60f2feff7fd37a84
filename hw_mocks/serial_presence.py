"""The proof, for a program, that a serial port which it has opened is one of our emulated ones.

Nothing may be asked on the line itself, which could be a real board's. The emulation listens on a
local socket that is named after its pseudo-terminal instead; the listener there must be a
process of this user's that holds the other end of that very terminal.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from pathlib import Path
from typing import Final

_CREDENTIALS: Final = struct.Struct("=iII")  # process, user, group
_PTY_MAJORS: Final = range(136, 144)
_MINORS: Final = 256


def show_presence(slave: int) -> socket.socket:
    """Listen, so that programs can find out who is there; nobody is ever answered.

    The slave is the end of a pseudo-terminal that programs open.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(_address(os.fstat(slave)))
    listener.listen()
    return listener


def is_pseudo_terminal(device: str) -> bool:
    """Whether a port can be an emulated one at all."""
    try:
        return os.major(os.stat(device).st_rdev) in _PTY_MAJORS
    except OSError:
        return False


def is_emulated(descriptor: int) -> bool:
    """Whether the other end of an opened serial port is a mock board."""
    status = os.fstat(descriptor)
    if os.major(status.st_rdev) not in _PTY_MAJORS:
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
        peer.setblocking(False)
        if peer.connect_ex(_address(status)) != 0:
            return False
        packed = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process, user, _ = _CREDENTIALS.unpack(packed)
    return user == os.geteuid() and _holds_other_end(process, status.st_rdev)


def _address(status: os.stat_result) -> str:
    """Return an address in the abstract name space, which goes with the process that listens."""
    return f"\0armature-serial-{status.st_dev:x}-{status.st_rdev:x}"


def _holds_other_end(process: int, rdev: int) -> bool:
    """Whether a process has the master of a pseudo-terminal open, as the kernel says."""
    number = (os.major(rdev) - _PTY_MAJORS.start) * _MINORS + os.minor(rdev)
    told = ["tty-index:", str(number)]
    with contextlib.suppress(OSError):
        for file in Path(f"/proc/{process}/fdinfo").iterdir():
            with contextlib.suppress(OSError):  # closed meanwhile
                if told in (line.split() for line in file.read_text().splitlines()):
                    return True
    return False
