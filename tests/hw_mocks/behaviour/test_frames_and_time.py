"""Frames, time and the wire as the shared protocol page has them."""

from __future__ import annotations

import math

import pytest
from frame_host import MOTOR_1, MOTOR_2, FrameHost, bits

from firmware_protocol.codec import command_codec, reply_codec
from firmware_protocol.crc import ends_with_crc_halves_swapped
from firmware_protocol.fields import Framing
from firmware_protocol.profiles import PROFILES

every_profile = pytest.mark.parametrize("profile", PROFILES)
shifted_profiles = pytest.mark.parametrize("profile", ["arm", "uomodri"])


# --- echoes ---------------------------------------------------------------------------------------


@every_profile
def test_how_many_exchanges_late_a_command_is_confirmed(profile: str) -> None:
    host = FrameHost(profile)
    host.keep_sending(0, 5)
    lags = set()
    for _ in range(1500):
        reply = host.send(0)
        assert reply is not None
        lags.add((host.index - reply.index) & 0xFFFF)
    assert lags == set(range(1, PROFILES[profile].behaviour.reply_lag_max + 1))


@every_profile
def test_a_damaged_command_is_ignored_silently(profile: str) -> None:
    host = FrameHost(profile)
    host.keep_sending(0, 5)
    sound = host.index
    damaged = bytearray(host.frame(MOTOR_1, timeout_ms=1))
    damaged[5] ^= 4
    for _ in range(10):
        reply = host.exchange(bytes(damaged))
        assert reply is not None and reply.status & 0xF == 0
    assert reply.index == sound


# --- how fresh ------------------------------------------------------------------------------------


@shifted_profiles
def test_the_first_reply_after_a_pause_already_says_error_2(profile: str) -> None:
    host = FrameHost(profile)
    host.keep_sending(MOTOR_1, 20, timeout_ms=10)
    assert host.code == 0
    host.send(MOTOR_1, after_ms=50, timeout_ms=10)
    assert host.code == 2


@shifted_profiles
def test_positions_are_those_at_the_window(profile: str) -> None:
    host = FrameHost(profile)
    host.enable()
    zero_rad = host.plant.motor_position_rad[0]
    host.keep_sending(MOTOR_1, 100, iq_ff_a=(0.5, 0.5))
    for step in range(50):
        reply = host.send(MOTOR_1, after_ms=1.0 + 0.01 * step, iq_ff_a=(0.2, 0.2))
        assert reply is not None
        # The plant stands at the last whole step of 250 µs before the window.
        since_s = (host.clock.now_ns() - host.mock.now_ns) * 1e-9
        speed_rad_s = host.plant.motor_velocity_rad_s[0]
        true_rad = host.plant.motor_position_rad[0] - zero_rad + since_s * speed_rad_s
        age_s = (true_rad - reply.motor_position_rad[0]) / speed_rad_s
        assert -5e-6 < age_s < PROFILES[profile].behaviour.reply_age_max_s + 5e-6
    assert speed_rad_s > 20.0


# --- before and at the beginning ------------------------------------------------------------------


@every_profile
def test_before_the_first_valid_frame(profile: str) -> None:
    host = FrameHost(profile)
    host.pause(500)
    reply = host.exchange(bytes(PROFILES[profile].frame_size))
    assert reply is not None
    if PROFILES[profile].behaviour.is_blank_before_commands:
        version = (PROFILES[profile].reply.protocol_version or 0) << 4
        assert (reply.status, reply.timestamp_ms, reply.index) == (version, 0, 0)
        assert set(reply.motor_position_rad) | set(reply.iq_a) == {0.0}
    else:
        assert reply.status & bits("SE")
        assert reply.timestamp_ms > 400


@every_profile
def test_rs485_echoes_the_command_before_and_begins_unreadable(profile: str) -> None:
    board = FrameHost(profile).board
    command = command_codec(PROFILES[profile], Framing.RS485)
    reply = reply_codec(PROFILES[profile], Framing.RS485)
    first, *others = (
        frame
        for index in range(1, 8)
        for frame in board.receive(command.encode(command.make(index=index)))
    )
    assert len(first) == reply.size
    assert not first[:-4].strip(b"\0")
    assert not ends_with_crc_halves_swapped(first)
    lags = {number - reply.decode(frame).index for number, frame in enumerate(others, 2)}
    assert min(lags) == PROFILES[profile].behaviour.rs485_lag
    assert max(lags) <= PROFILES[profile].behaviour.reply_lag_max


@every_profile
def test_rs485_listens_to_address_0_too(profile: str) -> None:
    board = FrameHost(profile).board
    codec = command_codec(PROFILES[profile], Framing.RS485)
    body = bytearray(codec.encode(codec.make(index=5))[:-4])
    body[0] = 0
    frame = bytes(body) + codec._crc(bytes(body))
    assert len(board.receive(frame)) == 1
    body[0] = 0x41
    assert board.receive(bytes(body) + codec._crc(bytes(body))) == []


# --- clocks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "counts"), [("arm", 9990), ("uomodri", 9990), ("udriver2", 10_000)]
)
def test_time_stamps_of_ten_seconds(profile: str, counts: int) -> None:
    host = FrameHost(profile)

    def stamp() -> int:
        """The newest of some: those of `udriver2` may be torn."""
        return max(reply.timestamp_ms for _ in range(10) if (reply := host.send(0)))

    before = stamp()
    host.pause(10_000 - 10)
    assert abs(stamp() - before - counts) <= 1


@every_profile
@pytest.mark.parametrize("iq_ff_a", [0.0, 0.05])
def test_the_clock_of_udriver2_overflows_under_current(profile: str, iq_ff_a: float) -> None:
    host = FrameHost(profile)
    host.enable()
    host.keep_sending(MOTOR_1, 20, iq_ff_a=(iq_ff_a, iq_ff_a))
    # The board alone, as if so much time had passed: nothing else would change meanwhile.
    host.board.tick(17 * 60 * 1_000_000_000)
    assert host.board.error == 0
    host.board.tick(18 * 60 * 1_000_000_000)
    assert host.board.error == (2 if profile == "udriver2" and iq_ff_a else 0)


# --- torn replies ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("profile", "output"), [("udriver2", 2), ("udriver2", 1), ("uomodri", 2)])
def test_replies_of_udriver2_are_torn_in_motor_2s_position(profile: str, output: int) -> None:
    """By up to 1/256 turn, 2 to 4 % of them at half a turn a second."""
    host = FrameHost(profile, output=output)
    mode = MOTOR_1 if output == 1 else MOTOR_2
    host.enable(mode)
    zero_rad, torn, count = host.plant.motor_position_rad[0], 0, 4000
    values = {"motor_velocity_rad_s": (math.pi, math.pi), "kd_a_s_per_rad": (0.3, 0.3)}
    host.keep_sending(mode, 200, **values)
    for _ in range(count):
        reply = host.send(mode, **values)
        assert reply is not None
        at_rad = reply.motor_position_rad[output - 1]
        true_rad = host.plant.motor_position_rad[0] - zero_rad
        off_turns = (true_rad - at_rad) / math.tau
        assert abs(off_turns) < 1.2 / 256
        torn += abs(off_turns) > 0.7 / 256
    assert abs(host.plant.motor_velocity_rad_s[0] - math.pi) < 0.5
    if profile == "udriver2" and output == 2:
        assert 0.015 < torn / count < 0.045
    else:
        assert torn == 0


# --- windows of another length --------------------------------------------------------------------


@every_profile
@pytest.mark.parametrize("cut", [2, 20, 32])
def test_a_short_window_leaves_a_board_deaf_with_sound_replies(profile: str, cut: int) -> None:
    host = FrameHost(profile)
    host.keep_sending(0, 5)
    before = host.index
    host.exchange(host.frame(0)[:cut])
    echoes = set()
    for _ in range(20):
        reply = host.send(0)
        assert reply is not None  # whatever the board hears, it is heard
        echoes.add(reply.index)
    if not PROFILES[profile].behaviour.is_receiver_shifted:
        assert len(echoes) > 10
        return
    assert echoes == {before}
    words = 0
    while host.reply is None or host.reply.index == before:
        host.exchange(bytes(2), after_ms=0.1)
        words += 1
        assert words <= PROFILES[profile].frame_size // 2
        host.send(0)
        host.send(0)
        # Two more whole frames leave the shift as it is.
    assert words == (PROFILES[profile].frame_size - cut) // 2
    lag = host.index - host.reply.index
    assert lag in (1, 2)
