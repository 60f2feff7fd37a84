"""One chip-select window after the other: order, gaps, cuts, damage, silence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from board_rig import IDLE, ON, STATUS, Rig

from firmware_protocol.errors import CrcError, is_idle_line
from hw_mocks.clock import VirtualClock
from hw_mocks.mock_link import mock_links

MakeRig = Callable[..., Rig]


def test_the_reply_to_a_command_comes_with_the_next_exchange(profile: str, rig: MakeRig) -> None:
    asked = rig(profile)
    lags = Counter()
    for number in range(1000):
        reply = asked.send()
        asked.wait()
        if number > 2:
            lags[asked.index - reply.index] += 1
    if profile == "udriver2":
        # As it comes: in the next exchange, now and then one later.
        assert set(lags) == {1, 2}
        assert 10 < lags[2] < 200
    else:
        assert set(lags) == {1}


def test_a_reply_tells_how_things_stood_at_the_exchange_before(profile: str, rig: MakeRig) -> None:
    asked = rig(profile)
    asked.send()
    asked.wait(40)
    assert asked.send().timestamp_ms == 0
    asked.wait(2)
    assert asked.send().timestamp_ms == 40


def test_the_timestamp_counts_milliseconds_and_wraps(rig: MakeRig) -> None:
    asked = rig("arm")
    stamps = []
    for _ in range(4):
        asked.wait(20_000)
        stamps.append(asked.ask_again().timestamp_ms)
    assert stamps == [20_000, 40_000, 60_000, 80_000 - 65_536]


def test_what_a_whole_frame_will_get_is_known_before_it_comes(profile: str, rig: MakeRig) -> None:
    asked = rig(profile)
    for _ in range(5):
        ready = asked.board.ready_reply
        assert asked.board.shift(asked.frame()) == ready
        assert asked.board.ready_reply is None  # not before the board has looked at its frame
        asked.board.settle()
        asked.wait()
    asked.board.transfer(asked.frame()[:10])
    assert (asked.board.ready_reply is None) == (profile == "uomodri")


def test_the_index_is_echoed_whatever_it_is(profile: str, rig: MakeRig) -> None:
    asked = rig(profile)
    for index in (0xFFFF, 0, 0x8000, 0x1234):
        for _ in range(2):
            asked.index = index - 1
            asked.send()
            asked.wait()
        assert index in {asked.send().index for _ in range(2)}
        asked.wait()


# --- the gap between frames -----------------------------------------------------------------------


@pytest.mark.parametrize("gap_us", [300, 500, 690, 700, 750, 1000])
def test_udriver2_misses_frames_that_come_too_early(
    profile: str, rig: MakeRig, gap_us: int
) -> None:
    """To the microsecond, although physics steps are longer."""
    robot_rig = rig(profile)
    clock = VirtualClock()
    (link,) = mock_links(robot_rig.robot, clock)
    heard = set()
    for _ in range(200):
        clock.advance_ns(gap_us * 1000)
        heard.add(robot_rig.decode(link.exchange(robot_rig.frame())).index)
    # The very first frame is never too early.
    assert len(heard) > 150 if gap_us >= 700 or profile != "udriver2" else heard <= {0, 1}


def test_after_a_pause_udriver2_listens_again(rig: MakeRig) -> None:
    hasty = rig("udriver2")
    for _ in range(20):
        hasty.send()
        hasty.wait(0.25)
    hasty.wait(1)
    hasty.send()
    hasty.wait(1)
    assert hasty.send().index in (hasty.index - 1, 1)
    hasty.wait(1)
    assert hasty.send().index in (hasty.index - 1, hasty.index - 2)


# --- damage ---------------------------------------------------------------------------------------


def test_every_flipped_bit_of_a_command_makes_it_unheard(profile: str, rig: MakeRig) -> None:
    deaf = rig(profile)
    deaf.run(2)
    echo = deaf.index
    for bit in range(8 * deaf.profile.frame_size):
        frame = bytearray(deaf.frame(mode=ON, iq_ff_a=1.0))
        frame[bit // 8] ^= 0x80 >> bit % 8
        reply = deaf.decode(deaf.board.transfer(bytes(frame)))
        deaf.wait()
        assert reply.index in (echo, echo - 1)
        assert not reply.status & STATUS["SE"]
    deaf.run(2, mode=ON)
    assert deaf.send(mode=ON).status & STATUS["SE"]


def test_a_shifted_or_empty_line_is_no_command(profile: str, rig: MakeRig) -> None:
    deaf = rig(profile)
    size = deaf.profile.frame_size
    for frame in (bytes(size), b"\xff" * size, b"\x00" + deaf.frame(mode=ON)[:-1]):
        deaf.board.transfer(frame)
        deaf.wait()
    assert not deaf.decode(deaf.board.transfer(bytes(size))).status & STATUS["SE"]


# --- truncation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [1, 2, 16, 33])
def test_a_cut_window_shifts_uomodri_until_the_rest_is_clocked(
    profile: str, rig: MakeRig, cut: int
) -> None:
    cut_short = rig(profile)
    cut_short.run(3)
    size = cut_short.profile.frame_size
    received = cut_short.board.transfer(cut_short.frame()[:cut])
    assert len(received) == cut
    for _ in range(5):
        cut_short.wait()
        window = cut_short.board.transfer(cut_short.frame(mode=ON))
        if profile == "uomodri":
            with pytest.raises(CrcError):
                cut_short.decode(window)
        else:
            cut_short.decode(window)
    if profile == "uomodri":
        assert cut_short.board.error == 0
        cut_short.board.transfer(bytes(size - cut))
        cut_short.wait()
    reply = cut_short.run(3, mode=ON)[-1]
    assert reply.status & STATUS["SE"]
    assert reply.index in (cut_short.index - 1, cut_short.index - 2)


def test_the_watchdog_runs_while_uomodri_is_out_of_step(rig: MakeRig) -> None:
    shifted = rig("uomodri")
    shifted.calibrate()
    shifted.run(3, mode=ON, timeout_ms=20)
    shifted.board.transfer(bytes(10))
    for _ in range(25):
        shifted.wait()
        shifted.board.transfer(shifted.frame(mode=ON, timeout_ms=20))
    shifted.board.transfer(bytes(24))
    assert shifted.ask_again(mode=ON).status & 0xF == 2


def test_a_window_may_hold_two_frames_for_uomodri(rig: MakeRig) -> None:
    """Its DMA runs on: the second frame of a long window answers the first."""
    streaming = rig("uomodri")
    window = streaming.frame(mode=ON) + streaming.frame(mode=ON)
    received = streaming.board.transfer(window)
    assert [streaming.decode(received[k : k + 34]).index for k in (0, 34)] == [0, 1]
    assert streaming.send(mode=ON).index == 2


def test_bytes_after_a_frame_are_lost_on_the_others(rig: MakeRig) -> None:
    for name in ("arm", "udriver2"):
        board = rig(name)
        size = board.profile.frame_size
        received = board.board.transfer(board.frame() + b"more")
        assert len(received) == size + 4
        board.decode(received[:size])
        board.wait()
        assert board.send().index in (0, 1)
        board.wait()
        board.send()


# --- supply ---------------------------------------------------------------------------------------


def test_a_board_without_supply_leaves_the_line_idle(profile: str, rig: MakeRig) -> None:
    absent = rig(profile)
    absent.calibrate()
    absent.run(100, mode=ON, iq_ff_a=0.5)
    absent.board.power_off()
    received = absent.board.transfer(absent.frame(mode=ON))
    assert is_idle_line(received)
    with pytest.raises(CrcError):
        absent.decode(received)
    speed = absent.robot.plant.motor_velocity_rad_s[0]
    absent.wait(5)
    assert 0.0 < absent.robot.plant.motor_velocity_rad_s[0] < speed  # it coasts
    absent.wait(300)  # no watchdog without supply
    absent.board.power_on()
    assert absent.decode(absent.board.transfer(bytes(absent.profile.frame_size))).status & 0xF == 0


def test_a_reboot_forgets_everything(profile: str, rig: MakeRig) -> None:
    rebooted = rig(profile, effects=IDLE)
    rebooted.calibrate()
    rebooted.run(500, mode=ON, iq_ff_a=0.5)
    rebooted.board.power_off()
    rebooted.wait(30)
    rebooted.board.power_on()
    reply = rebooted.decode(rebooted.board.transfer(bytes(rebooted.profile.frame_size)))
    assert (reply.timestamp_ms, reply.index, reply.motor_position_rad[0]) == (0, 0, 0.0)
    assert reply.status & ~0x70 == 0
    rebooted.wait(1000)
    assert rebooted.ask_again(mode=ON).timestamp_ms == 1000
    # Calibration is lost.
    assert not rebooted.run(40, mode=ON)[-1].status & STATUS["M1R"]
    assert rebooted.run(40, mode=ON)[-1].status & STATUS["M1R"]


def test_a_reboot_ends_a_misalignment_and_drops_held_commands(rig: MakeRig) -> None:
    shifted = rig("uomodri")
    shifted.board.transfer(bytes(10))
    shifted.board.power_off()
    shifted.board.power_on()
    shifted.run(2)
    late = rig("arm")
    late.board.hold_commands(2)
    late.send(mode=ON)
    late.board.power_off()
    late.board.power_on()
    late.wait()
    late.board.transfer(bytes(38))
    assert late.decode(late.board.transfer(bytes(38))).index == 0
