"""A window of another length: which boards it puts out of step, how that shows, what cures it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from acceptance import IS_LONG
from board_rig import ON, STATUS, Rig

MakeRig = Callable[..., Rig]
SHIFTED = ["arm", "uomodri"]


def words_until_the_echo_moves(rig: Rig) -> int:
    """Clock single 16-bit words, a frame after each, as a host does to get in step again."""
    frozen = rig.send().index
    for words in range(1, rig.profile.frame_size // 2):
        rig.board.transfer(bytes(2))
        rig.wait()
        rig.send()
        rig.wait()
        if rig.send().index != frozen:
            return words
        rig.wait()
    raise AssertionError("it never moved")


@pytest.mark.parametrize("name", SHIFTED)
def test_short_windows_of_every_length_shift_only_the_receiver_and_single_words_cure_it(
    rig: MakeRig, name: str
) -> None:
    board = rig(name)
    size = board.profile.frame_size
    assert board.profile.behaviour.is_receiver_shifted
    board.run(3, timeout_ms=0)
    for cut in range(2, size, 1 if IS_LONG else 3):
        frozen = board.index
        assert len(board.board.transfer(board.frame(timeout_ms=0)[:cut])) == cut
        for _ in range(3):
            board.wait()
            # Sound replies, fresh ones, and a frozen echo.
            reply = board.send(timeout_ms=0)
            assert reply.index == frozen
            assert reply.timestamp_ms >= (board.robot.now_ns - 2_000_000) // 1_001_000
        # Every frame that is clocked in vain leaves it as it is.
        assert words_until_the_echo_moves(board) == (size - cut + 1) // 2 % (size // 2)
        board.wait()
        board.run(2, timeout_ms=0)
        assert board.send().index == board.index - 1
        board.wait()


@pytest.mark.parametrize("name", SHIFTED)
def test_half_a_word_is_lost_with_its_window(rig: MakeRig, name: str) -> None:
    """Our reading: the boards' SPI counts 16-bit words."""
    board = rig(name)
    board.run(3)
    assert len(board.board.transfer(bytes(1))) == 1
    board.wait()
    board.run(1)
    assert board.send().index == board.index - 1


def test_udriver2_is_put_out_of_step_by_nothing(rig: MakeRig) -> None:
    board = rig("udriver2")
    assert not board.profile.behaviour.is_receiver_shifted
    board.run(3)
    for length in (1, 2, 16, 33, 38, 68):
        assert len(board.board.transfer(board.frame()[:length].ljust(length, b"\0"))) == length
        board.wait()
        board.run(3)
        assert board.send().index in range(board.index - 3, board.index)
        board.wait()


@pytest.mark.parametrize("name", SHIFTED)
def test_the_watchdog_runs_while_a_board_is_out_of_step(rig: MakeRig, name: str) -> None:
    shifted = rig(name)
    shifted.calibrate()
    shifted.run(3, mode=ON, timeout_ms=20)
    shifted.board.transfer(bytes(10))
    replies = shifted.run(25, mode=ON, timeout_ms=20)
    assert [reply.status & 0xF for reply in (replies[10], replies[-1])] == [0, 2]


@pytest.mark.parametrize("name", SHIFTED)
def test_a_window_may_hold_two_frames(rig: MakeRig, name: str) -> None:
    """The receiver takes both; the reply is one, and nothing comes after it."""
    streaming = rig(name)
    streaming.run(3)
    window = streaming.frame(mode=ON) + streaming.frame(mode=ON)
    received = streaming.board.transfer(window)
    size = streaming.profile.frame_size
    assert streaming.decode(received[:size]).index == streaming.index - 2
    assert received[size:] == bytes(size)
    reply = streaming.send(mode=ON)
    assert reply.index == streaming.index - 1
    assert not reply.status & STATUS["M1R"]
