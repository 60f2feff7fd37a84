"""Which replies a board object hands on: sound, new, and of this session."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from daq.boards import board as board_module
from daq.boards.board import Board, Outcome
from daq.errors import UnsafeCommandError
from firmware_protocol.codec import command_codec, reply_codec
from firmware_protocol.errors import FieldRangeError
from firmware_protocol.fields import Framing
from firmware_protocol.profiles import ARM

COMMAND, REPLY = command_codec(ARM), reply_codec(ARM)
VERSION = 1 << 4


class PerfectBoard:
    """Answers like a healthy board: the reply to a command is in the next exchange."""

    name, framing, resynchronised, clock_hz = "perfect", Framing.SPI, 0, 8e6

    def __init__(self, *, echo: int = 0) -> None:
        self.replies: list[bytes] = []
        self.tamper: Callable[[bytes], bytes] = lambda reply: reply
        self.echo = echo
        self.milliseconds = 0

    def exchange(self, frame: bytes) -> bytes:
        values = REPLY.make(
            status=VERSION,
            timestamp_ms=self.milliseconds & 0xFFFF,
            index=self.echo,
            motor_position_rad=(self.milliseconds * 0.001, 0.0),
        )
        self.replies.append(REPLY.encode(values))
        self.echo = COMMAND.decode(frame).index
        self.milliseconds += 1
        return self.tamper(self.replies[-1])

    def realign(self, missing: int) -> None:
        raise AssertionError("an arm board is never out of step")

    def close(self) -> None:
        pass


class Bench:
    def __init__(self, link: PerfectBoard) -> None:
        self.link = link
        self.now_ns = 0
        self.board = Board("bench", ARM, link, now_ns=lambda: self.now_ns)

    def cycle(self, elapsed_ns: int = 1_000_000) -> Outcome:
        self.now_ns += elapsed_ns
        reading = self.board.exchange(self.board.command())
        fresh = reading.outcome in (Outcome.OK, Outcome.LATE, Outcome.COMMAND_LOST)
        assert (reading.values is not None) == fresh
        return reading.outcome


@pytest.fixture
def bench() -> Bench:
    bench = Bench(PerfectBoard())
    assert [bench.cycle() for _ in range(10)] == [Outcome.UNCONFIRMED] + [Outcome.OK] * 9
    return bench


@pytest.mark.parametrize("age", [1, 2, 3, 8])
def test_an_old_reply_is_stale_whatever_its_age(bench: Bench, age: int) -> None:
    bench.link.tamper = lambda _: bench.link.replies[-1 - age]
    assert bench.cycle() is Outcome.STALE
    bench.link.tamper = lambda reply: reply
    assert bench.cycle() is Outcome.OK
    assert bench.board.counters.stale == 1


def test_swapped_replies_never_go_back_in_time(bench: Bench) -> None:
    late: list[bytes] = []

    def swap(reply: bytes) -> bytes:
        late.append(reply)
        return late[-2] if len(late) % 2 == 0 else reply

    bench.link.tamper = swap
    assert {bench.cycle() for _ in range(10)} == {Outcome.OK, Outcome.STALE}


@pytest.mark.parametrize("ahead", [1, 2, 100, 30_000])
def test_an_echo_that_we_never_sent_is_refused(bench: Bench, ahead: int) -> None:
    def foretell(reply: bytes) -> bytes:
        values = REPLY.decode(reply)
        return REPLY.encode(values._replace(index=(values.index + ahead) & 0xFFFF))

    bench.link.tamper = foretell
    assert bench.cycle() is Outcome.STALE


@pytest.mark.parametrize("left_behind", [0, 1, 0x4FFF, 0x5000, 0x5001, 0x5002, 0x5100, 0xFFFF])
def test_what_an_earlier_program_left_on_the_board_is_not_ours(left_behind: int) -> None:
    bench = Bench(PerfectBoard(echo=left_behind))
    assert [bench.cycle() for _ in range(3)] == [Outcome.UNCONFIRMED, Outcome.OK, Outcome.OK]


def test_a_reboot_is_noticed_and_its_first_reply_withheld(bench: Bench) -> None:
    bench.link.milliseconds, bench.link.echo = 0, 0
    assert bench.cycle() is Outcome.STALE
    assert bench.cycle() is Outcome.OK
    assert bench.board.counters.restarted == 1


def test_the_index_wraps_without_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board_module, "_FIRST_INDEX", 0xFFF0)
    bench = Bench(PerfectBoard())
    assert bench.cycle() is Outcome.UNCONFIRMED
    assert {bench.cycle() for _ in range(100)} == {Outcome.OK}
    assert bench.link.echo < 100


def test_a_clock_that_stands_still_is_noticed(bench: Bench) -> None:
    def freeze(reply: bytes) -> bytes:
        return REPLY.encode(REPLY.decode(reply)._replace(timestamp_ms=7))

    bench.link.tamper = freeze
    outcomes = [bench.cycle() for _ in range(30)]
    assert outcomes[5] is Outcome.OK
    assert outcomes[-1] is Outcome.STALLED


def test_counts_that_last_a_little_longer_than_a_millisecond_are_no_standstill(
    bench: Bench,
) -> None:
    """Every thousandth reply says the same time stamp as the one before."""

    def slow(reply: bytes) -> bytes:
        counts = int((bench.link.milliseconds - 1) / 1.001)
        return REPLY.encode(REPLY.decode(reply)._replace(timestamp_ms=counts & 0xFFFF))

    bench.link.tamper = slow
    assert {bench.cycle() for _ in range(5000)} == {Outcome.OK}
    assert bench.board.counters.restarted == bench.board.counters.stalled == 0


def test_a_pause_of_the_host_is_no_standstill_of_the_board(bench: Bench) -> None:
    def same_millisecond(reply: bytes) -> bytes:
        return REPLY.encode(REPLY.decode(reply)._replace(timestamp_ms=100))

    bench.link.tamper = same_millisecond
    # Two replies made within a millisecond, the second one fetched much later.
    assert [bench.cycle(100_000), bench.cycle(100_000)] == [Outcome.OK, Outcome.OK]
    assert bench.cycle(500_000_000) is Outcome.OK


def test_a_refused_command_takes_no_index(bench: Bench) -> None:
    with pytest.raises(FieldRangeError):
        bench.board.exchange(bench.board.command(iq_ff_a=(float("nan"), 0.0)))
    assert bench.cycle() is Outcome.OK


@pytest.mark.parametrize("mode", [0x80, 0xC0, 0xFC, 0x00, 0x60, 0x7C])
def test_a_time_out_comes_with_the_system_and_is_refused_the_other_way_round(
    bench: Bench, mode: int
) -> None:
    is_enabled = bool(mode & 0x80)
    assert bench.board.command(mode=mode).timeout_ms == (10 if is_enabled else 0)
    assert bench.board.command(mode=mode, timeout_ms=20).timeout_ms == 20
    with pytest.raises(UnsafeCommandError) as caught:
        bench.board.exchange(bench.board.command(mode=mode, timeout_ms=0 if is_enabled else 20))
    assert caught.value.board == bench.board.name
    assert caught.value.timeout_ms == (0 if is_enabled else 20)
    assert bench.cycle() is Outcome.OK


def test_a_dead_line_counts_every_reply_that_it_costs(bench: Bench) -> None:
    bench.link.tamper = lambda reply: bytes(len(reply))
    assert {bench.cycle() for _ in range(100)} == {Outcome.SILENT}
    assert bench.board.counters.lost_replies == 100


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_short_floats_are_not_sent_coarser_than_they_are(kind: type[np.floating]) -> None:
    value = kind(3.3)
    exact = COMMAND.make(motor_position_rad=(float(value), 0.0))
    assert COMMAND.encode(COMMAND.make(motor_position_rad=(value, 0.0))) == COMMAND.encode(exact)
