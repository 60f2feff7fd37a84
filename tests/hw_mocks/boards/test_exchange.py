"""One chip-select window after the other: echoes, gaps, damage, silence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from board_rig import IDLE, ON, STATUS, Rig

from firmware_protocol.errors import CrcError, is_idle_line
from hw_mocks.clock import VirtualClock
from hw_mocks.mock_link import mock_links

MakeRig = Callable[..., Rig]


def test_the_echo_is_one_late_on_uomodri_and_arm_and_one_to_three_on_udriver2(
    profile: str, rig: MakeRig
) -> None:
    """However often a reply is made anew before its window, as behind emulated devices."""
    asked = rig(profile)
    echoes = []
    for _ in range(4000 if profile == "udriver2" else 200):
        asked.board.prepared_reply()
        echoes.append(asked.send().index)
        asked.wait()
    lags = Counter(number - echo for number, echo in enumerate(echoes, start=1))
    assert set(lags) == ({1, 2, 3} if profile == "udriver2" else {1})
    assert lags[1] > 0.8 * len(echoes)
    assert asked.profile.behaviour.reply_lag_max == max(lags)
    # It never goes back.
    assert echoes == sorted(echoes)


def test_the_index_is_echoed_whatever_it_is(profile: str, rig: MakeRig) -> None:
    asked = rig(profile)
    for index in (0xFFFF, 0, 0x8000, 0x1234):
        for _ in range(2):
            asked.index = index - 1
            asked.send()
            asked.wait()
        assert index in {asked.look().index for _ in range(3)}
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
    hasty.run(3)
    assert hasty.send().index in range(hasty.index - 3, hasty.index)


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
        assert 0 <= echo - reply.index < deaf.profile.behaviour.reply_lag_max
        assert not reply.status & STATUS["M1E"]
    deaf.run(2, mode=ON)
    assert deaf.send(mode=ON).status & STATUS["M1E"]


def test_a_shifted_or_empty_line_is_no_command(profile: str, rig: MakeRig) -> None:
    deaf = rig(profile)
    size = deaf.profile.frame_size
    for frame in (bytes(size), b"\xff" * size, b"\x00" + deaf.frame(mode=ON)[:-1]):
        deaf.board.transfer(frame)
        deaf.wait()
    reply = deaf.look()
    assert reply.index == 0 and not reply.status & STATUS["M1E"]


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
    assert absent.look().status & 0xF == 0


def test_a_reboot_forgets_everything(profile: str, rig: MakeRig) -> None:
    rebooted = rig(profile, effects=IDLE)
    rebooted.calibrate()
    rebooted.run(500, mode=ON, iq_ff_a=0.5)
    rebooted.board.power_off()
    rebooted.wait(30)
    rebooted.board.power_on()
    reply = rebooted.look()
    assert (reply.timestamp_ms, reply.index) == (0, 0)
    assert abs(reply.motor_position_rad[0]) < 0.01
    assert reply.status & ~0x70 == (STATUS["SE"] if profile == "udriver2" else 0)
    rebooted.wait(1001)
    assert rebooted.ask_again(mode=ON).timestamp_ms in (1000, 1001)
    # Calibration is lost.
    assert not rebooted.run(40, mode=ON)[-1].status & STATUS["M1R"]
    assert rebooted.run(40, mode=ON)[-1].status & STATUS["M1R"]


def test_a_reboot_ends_a_misalignment_and_drops_held_commands(rig: MakeRig) -> None:
    shifted = rig("uomodri")
    shifted.board.transfer(bytes(10))
    shifted.board.power_off()
    shifted.board.power_on()
    shifted.run(2)
    assert shifted.send().index == shifted.index - 1
    late = rig("arm")
    late.board.hold_commands(2)
    late.send(mode=ON)
    late.board.power_off()
    late.board.power_on()
    late.wait()
    late.look()
    assert late.look().index == 0
