"""The shared frame buffer, with programs that die, sleep or scribble at the wrong moment."""

from __future__ import annotations

import itertools
import mmap
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import hw_mocks.emulated_spi.dma_buffer as module
from hw_mocks.emulated_spi.dma_buffer import DmaBuffer, DmaWindow
from hw_mocks.emulated_spi.server import SpidevServer, SpiTransfer
from hw_mocks.errors import OfferOpenError

pytestmark = pytest.mark.compiler

SPEEDS = {"device_speed_hz": 1_000, "speed_max_hz": 2_000}
CLOSED, READY, RUNNING, BUSY = range(4)
TURN = struct.Struct("=Q")


class Program:
    """The other end, one move at a time."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 0)

    @property
    def turn(self) -> int:
        return int(TURN.unpack_from(self.memory, 16)[0])

    @turn.setter
    def turn(self, turn: int) -> None:
        TURN.pack_into(self.memory, 16, turn)

    @property
    def phase(self) -> int:
        return self.turn & 3

    def start(self) -> int:
        assert self.phase == READY
        self.turn += RUNNING - READY
        return self.turn

    def leave(self, sent: bytes, *, started_ns: int = 5, speed_hz: int = 7) -> None:
        struct.pack_into("=qI", self.memory, 24, started_ns, speed_hz)
        self.memory[36 + 256 : 36 + 256 + len(sent)] = sent
        self.turn += BUSY - RUNNING


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "frames.dma"


@pytest.fixture
def buffer(path: Path) -> Iterator[DmaBuffer]:
    made = DmaBuffer(path)
    yield made
    made.close()


@pytest.fixture
def program(buffer: DmaBuffer, path: Path) -> Iterator[Program]:
    peer = Program(path)
    yield peer
    peer.memory.close()


def test_the_layout_is_that_of_the_header(compile_c: Callable[..., Path]) -> None:
    fields = ("size", "device_speed_hz", "turn", "started_ns", "speed_hz", "reply", "command")
    offsets = ", ".join(f"(int)offsetof(struct dma_buffer, {name})" for name in fields)
    program = compile_c(
        '#include <stddef.h>\n#include <stdio.h>\n#include "dma_buffer.h"\n'
        f'int main(void) {{ printf("{"%d " * len(fields)}%d %d", {offsets},'
        " DMA_VERSION, DMA_FRAME_BYTES); return sizeof(struct dma_buffer) > 4096; }",
        f"-I{Path(module.__file__).with_name('c')}",
    )
    output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    assert [int(word) for word in output.split()] == [4, 8, 16, 24, 32, 36, 36 + 256, 1, 256]


def test_a_window_takes_the_reply_and_leaves_its_frame(buffer: DmaBuffer, program: Program) -> None:
    assert program.phase == CLOSED
    for count in range(3):
        reply, sent = bytes([count] * 8), bytes([0x80 + count] * 8)
        buffer.offer(reply, **SPEEDS)
        assert (buffer.is_used, buffer.take()) == (False, None)
        assert struct.unpack_from("=IIII", program.memory) == (1, 8, 1_000, 2_000)
        program.start()
        assert (buffer.is_used, buffer.take()) == (False, None)
        assert program.memory[36 : 36 + 8] == reply
        program.leave(sent)
        assert buffer.is_used
        assert buffer.take() == DmaWindow(sent, 7, 5)
        assert (buffer.is_used, buffer.take()) == (False, None)
        assert program.phase == BUSY


def test_what_nobody_took_can_be_taken_back(buffer: DmaBuffer, program: Program) -> None:
    buffer.offer(b"reply", **SPEEDS)
    assert buffer.retract() is None
    assert program.phase == BUSY
    buffer.refuse()
    assert program.phase == CLOSED
    assert buffer.retract() is None


def test_who_was_quicker_than_the_retraction_is_heard(buffer: DmaBuffer, program: Program) -> None:
    buffer.offer(b"reply", **SPEEDS)
    program.start()
    program.leave(b"early")
    assert buffer.retract() == DmaWindow(b"early", 7, 5)


def test_a_program_that_died_holding_the_buffer_is_not_waited_for_long(
    buffer: DmaBuffer, program: Program
) -> None:
    buffer.offer(b"reply", **SPEEDS)
    held = program.start()
    started_s = time.monotonic()
    assert buffer.retract() is None
    assert 0.01 <= time.monotonic() - started_s < 1.0
    assert buffer.is_spoilt  # it may still write, whenever it wakes up
    # Had it only slept, its next move would find that the turn has gone on.
    buffer.offer(b"later", **SPEEDS)
    assert program.turn != held
    assert program.turn >> 2 != held >> 2


def test_a_scribbler_cannot_make_the_board_read_out_of_bounds(
    buffer: DmaBuffer, program: Program
) -> None:
    buffer.offer(b"reply", **SPEEDS)
    turn = program.turn
    program.memory[:] = b"\xff" * len(program.memory)
    assert buffer.take() is None
    program.turn = turn + BUSY - READY
    window = buffer.take()
    assert window is not None
    assert window.sent == b"\xff" * 5
    buffer.offer(b"reply", **SPEEDS)
    program.turn = 12345
    assert buffer.retract() is None


@pytest.mark.parametrize("size", [0, 257])
def test_a_reply_must_fit(buffer: DmaBuffer, size: int) -> None:
    with pytest.raises(ValueError, match=rf"\b{size}\b.*\b256\b"):
        buffer.offer(bytes(size), **SPEEDS)


def test_an_open_offer_is_not_written_over(buffer: DmaBuffer) -> None:
    buffer.offer(b"reply", **SPEEDS)
    with pytest.raises(OfferOpenError):
        buffer.offer(b"other", **SPEEDS)


def test_a_dead_boards_file_is_replaced_not_shared(path: Path) -> None:
    left = DmaBuffer(path)
    left.offer(b"old", **SPEEDS)
    old = Program(path)
    successor = DmaBuffer(path)
    successor.offer(b"new", **SPEEDS)
    assert old.memory[36:39] == b"old"
    assert Program(path).memory[36:39] == b"new"
    successor.close()
    successor.close()
    assert not path.exists()
    left.close()


def test_closing_sends_programs_to_the_socket(path: Path) -> None:
    buffer = DmaBuffer(path)
    buffer.offer(b"reply", **SPEEDS)
    program = Program(path)
    buffer.close()
    assert program.phase == CLOSED


def test_sockets_are_served_also_when_every_round_brings_a_window(short_directory: Path) -> None:
    device = "/dev/spidev0.0"
    seen: list[bytes] = []

    def answer(transfer: SpiTransfer) -> bytes:
        seen.append(transfer.tx)
        return transfer.tx

    with (
        SpidevServer(short_directory, [device], answer, prepare=lambda _: b"ready") as server,
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer,
    ):
        server.poll(0)
        peer.connect(str(short_directory / "spidev0.0"))
        program = Program(short_directory / "spidev0.0.dma")
        server.poll(0)
        for _ in range(3):
            program.start()
            program.leave(b"frame")
            peer.send(b"plain")
            assert server.poll(0) == 2
        assert seen == [b"frame", b"plain"] * 3


@pytest.mark.parametrize("looks_before", range(4))
def test_a_window_that_ends_at_the_last_moment_is_not_lost(
    buffer: DmaBuffer, program: Program, monkeypatch: pytest.MonkeyPatch, looks_before: int
) -> None:
    """Whatever the moment at which the program ends its window: between any two looks."""
    look, looks = DmaBuffer._turn, itertools.count()

    def look_and_finish(self: DmaBuffer) -> int:
        turn = look(self)
        if next(looks) == looks_before:
            program.leave(b"frame")
        return turn

    # On a busy machine a few looks may take longer than anybody should wait.
    monkeypatch.setattr("hw_mocks.emulated_spi.dma_buffer._PATIENCE_S", 60.0)
    buffer.offer(b"reply", **SPEEDS)
    program.start()
    monkeypatch.setattr(DmaBuffer, "_turn", look_and_finish)
    assert buffer.retract() == DmaWindow(b"frame", 7, 5)
