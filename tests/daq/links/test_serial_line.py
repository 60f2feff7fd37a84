"""Replies found among whatever else a serial line carries: real pyserial on a pseudo-terminal."""

from __future__ import annotations

import os
import threading
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daq.errors import DeviceGoneError
from daq.links.serial import SerialLink
from firmware_protocol.codec import command_codec, reply_codec
from firmware_protocol.fields import Framing
from firmware_protocol.frame_finder import FrameFinder
from firmware_protocol.profiles import ARM, PROFILES

REPLY = reply_codec(ARM, Framing.RS485)
COMMAND = command_codec(ARM, Framing.RS485)
QUESTION = COMMAND.encode(COMMAND.make(mode=0x80))


def reply(index: int = 1) -> bytes:
    return REPLY.encode(REPLY.make(status=0x8010, index=index))


class Line:
    """The far end of a serial line: answers each command with the bytes it is told to."""

    def __init__(self) -> None:
        self.far, self.near = os.openpty()
        tty.setraw(self.far)
        tty.setraw(self.near)
        self.device = os.ttyname(self.near)
        self.pieces: list[bytes] = []
        self.is_open = True

    def answer_once(self, *pieces: bytes, pause_s: float = 0.0) -> threading.Thread:
        def work() -> None:
            os.read(self.far, 4096)
            for piece in pieces:
                os.write(self.far, piece)
                time.sleep(pause_s)

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    def close(self) -> None:
        if self.is_open:
            os.close(self.far)
            os.close(self.near)
        self.is_open = False


@pytest.fixture
def line() -> Iterator[Line]:
    with closing(Line()) as line:
        yield line


@pytest.fixture
def ask(line: Line) -> Iterator[Callable[..., bytes]]:
    link = SerialLink(line.device, baud=1_000_000, reply=REPLY, reply_timeout_s=0.5)

    def ask(*pieces: bytes, pause_s: float = 0.0) -> bytes:
        thread = line.answer_once(*pieces, pause_s=pause_s)
        try:
            return link.exchange(QUESTION)
        finally:
            thread.join()

    ask.link = link  # type: ignore[attr-defined]
    with closing(link):
        yield ask


def test_a_reply_in_pieces_is_put_together(ask: Callable[..., bytes]) -> None:
    whole = reply()
    assert ask(whole[:1], whole[1:7], whole[7:], pause_s=0.01) == whole


def test_garbage_in_front_is_skipped_and_counted(ask: Callable[..., bytes]) -> None:
    assert ask(b"\x00\xff\xff\x13" + reply()) == reply()
    assert ask.link.resynchronised == 1  # type: ignore[attr-defined]


def test_half_a_reply_then_a_whole_one(ask: Callable[..., bytes]) -> None:
    assert ask(reply(7)[:20] + reply(8)) == reply(8)


def test_only_half_a_reply_is_handed_on_as_it_is(ask: Callable[..., bytes]) -> None:
    assert ask(reply()[:20]) == reply()[:20]
    # ... and does not spoil the next one.
    assert ask(reply(2)) == reply(2)


def test_nobody_answers(ask: Callable[..., bytes]) -> None:
    assert ask() == b""


def test_a_reply_that_came_too_late_is_not_taken_for_the_next(
    line: Line, ask: Callable[..., bytes]
) -> None:
    assert ask() == b""
    os.write(line.far, reply(1))
    # The kernel takes its time to carry it across.
    while ask.link._serial.in_waiting < len(reply(1)):  # type: ignore[attr-defined]
        time.sleep(0.001)
    assert ask(reply(2)) == reply(2)
    assert ask.link.resynchronised == 1  # type: ignore[attr-defined]


def test_a_flood_of_garbage_ends_with_the_time_out(ask: Callable[..., bytes]) -> None:
    answer = ask(*[REPLY.header * 100] * 10)
    assert len(answer) == REPLY.size
    assert not REPLY.is_sound(answer)


def test_an_unplugged_port_is_named(line: Line, ask: Callable[..., bytes]) -> None:
    line.close()
    with pytest.raises(DeviceGoneError) as caught:
        ask.link.exchange(QUESTION)  # type: ignore[attr-defined]
    assert caught.value.device == ask.link.name  # type: ignore[attr-defined]


@given(
    parts=st.lists(
        st.one_of(
            st.integers(0, 0xFFFF).map(reply),
            st.binary(max_size=60),
            st.sampled_from([REPLY.header, REPLY.header[:1], reply()[:25], reply()[5:]]),
        ),
        max_size=8,
    ),
    data=st.data(),
)
def test_every_whole_frame_among_garbage_is_found_however_the_bytes_arrive(
    parts: list[bytes], data: st.DataObject
) -> None:
    stream = b"".join(parts)
    finder = FrameFinder(REPLY)
    found = []
    while stream:
        cut = data.draw(st.integers(1, len(stream)))
        finder.feed(stream[:cut])
        stream = stream[cut:]
        while (frame := finder.take()) is not None:
            found.append(frame)
    # Random bytes do not have a right checksum, so these are all, and in order.
    assert found == [part for part in parts if REPLY.is_sound(part)]
    assert finder.skipped + len(finder.clear()) + sum(map(len, found)) == sum(map(len, parts))


@pytest.mark.parametrize("profile", list(PROFILES))
@given(data=st.binary(max_size=500))
def test_less_than_a_frame_is_kept(profile: str, data: bytes) -> None:
    codec = reply_codec(PROFILES[profile], Framing.RS485)
    finder = FrameFinder(codec)
    finder.feed(data)
    assert finder.take() is None
    assert len(finder.clear()) < codec.size
