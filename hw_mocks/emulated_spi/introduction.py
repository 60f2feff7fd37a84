"""The proof, for a program, that a device which it has opened is one of our emulated ones.

That a shim was to be preloaded proves nothing: the loader goes on without a library that it does
not find. What was opened is asked itself: an emulated device is a socket with our server behind it.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
from typing import Final

import msgspec

from hw_mocks.emulated_spi.packets import (
    MAGIC,
    PACKET_MAX_BYTES,
    REPLY,
    REQUEST,
    VERSION,
    Operation,
)
from hw_mocks.errors import NotEmulatedError

_ANSWER_MAX_MS: Final = 10_000
"""The other end is an ordinary process on what may be a busy computer."""
_CREDENTIALS: Final = struct.Struct("=iII")  # process, user, group


class Introduction(msgspec.Struct, frozen=True):
    """What an emulated device says of itself."""

    device: str
    mark: str
    """What the robot behind it was drawn by; empty when nobody said."""


def ask_who(descriptor: int, device: str) -> Introduction:
    """Ask an opened device who it is; nothing is sent unless it is a socket of this user's.

    Raises:
        NotEmulatedError: Nobody of ours answers.
    """
    try:
        with socket.socket(fileno=os.dup(descriptor)) as peer:
            is_local = peer.family == socket.AF_UNIX and peer.type == socket.SOCK_SEQPACKET
            if not is_local or _user_of(peer) != os.geteuid():
                raise NotEmulatedError(device, "it is a socket of somebody else's")
            peer.send(REQUEST.pack(MAGIC, VERSION, Operation.INTRODUCE, 0, 0, 0, 0))
            # Not settimeout: the shim's descriptor would be non-blocking, too.
            waiting = select.poll()
            waiting.register(peer, select.POLLIN)
            if not waiting.poll(_ANSWER_MAX_MS):
                raise NotEmulatedError(device, "its other end is silent")
            answer = peer.recv(PACKET_MAX_BYTES)
    except OSError as error:
        is_socket = error.errno != errno.ENOTSOCK
        reason = f"nobody answers ({error.strerror})" if is_socket else "it is not a socket"
        raise NotEmulatedError(device, reason) from error
    try:
        if REPLY.unpack_from(answer)[:4] != (MAGIC, VERSION, 0, 0):
            raise NotEmulatedError(device, "its other end is not an emulated device")
        introduction = msgspec.json.decode(answer[REPLY.size :], type=Introduction)
    except (struct.error, msgspec.MsgspecError) as error:
        raise NotEmulatedError(device, "its other end is not an emulated device") from error
    if introduction.device != device:
        raise NotEmulatedError(device, f"it is {introduction.device}")
    return introduction


def _user_of(peer: socket.socket) -> int:
    """Return the user who made the other end listen."""
    packed = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(packed)[1])
