"""The same board on a serial line: header, one reply per valid command, garbage between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from acceptance import examples
from board_rig import MODE, ON, STATUS, Rig
from hypothesis import given, settings
from hypothesis import strategies as st

from daq.robot import load_robot
from firmware_protocol.codec import reply_codec
from firmware_protocol.crc import crc32_mpeg2
from firmware_protocol.errors import ProtocolError
from firmware_protocol.fields import Framing
from firmware_protocol.profiles import PROFILES

MakeRig = Callable[..., Rig]


def command(rig: Rig, **fields: object) -> bytes:
    return rig.frame(Framing.RS485, **fields)


def test_the_header_stands_in_front_and_the_checksum_covers_it(profile: str, rig: MakeRig) -> None:
    serial = rig(profile)
    size = {"arm": 40}.get(profile, 36)
    frame = command(serial, mode=ON)
    assert frame[:2] == bytes([0x42, size]) and len(frame) == size
    serial.board.receive(frame)
    (reply,) = serial.board.receive(command(serial, mode=ON))
    assert reply[:2] == bytes([0xFF, size]) and len(reply) == size
    # The low half of the checksum first.
    crc = crc32_mpeg2(reply[:-4])
    assert reply[-4:] == crc[2:] + crc[:2]


def test_the_very_first_reply_is_zeros_with_a_zero_header(profile: str, rig: MakeRig) -> None:
    """Its checksum is that of the header FF 00: nobody can read it. After a reset, again."""
    serial = rig(profile)
    codec = reply_codec(serial.profile, Framing.RS485)
    for _ in range(2):
        (first,) = serial.board.receive(command(serial))
        assert first[:-4] == bytes(serial.profile.frame_size - 2)
        crc = crc32_mpeg2(b"\xff\x00" + first[2:-4])
        assert first[-4:] == crc[2:] + crc[:2]
        with pytest.raises(ProtocolError):
            codec.decode(first)
        (second,) = serial.board.receive(command(serial))
        codec.decode(second)
        serial.board.power_off()
        serial.board.power_on()


def test_the_reply_to_command_k_echoes_the_one_before(profile: str, rig: MakeRig) -> None:
    serial = rig(profile)
    codec = reply_codec(serial.profile, Framing.RS485)
    serial.board.receive(command(serial))
    lags = set()
    for _ in range(1000 if profile == "udriver2" else 50):
        (reply,) = serial.board.receive(command(serial, mode=MODE["ES"]))
        lags.add(serial.index - codec.decode(reply).index)
    assert lags == ({1, 2, 3} if profile == "udriver2" else {1})


def test_a_firmware_that_looks_at_the_command_first_echoes_it(rig: MakeRig) -> None:
    """None of ours does; the value of the profile decides."""
    serial = rig("uomodri")
    behaviour = replace(serial.profile.behaviour, rs485_lag=0, is_rs485_blank_first=False)
    serial.board.profile = replace(serial.profile, behaviour=behaviour)
    codec = reply_codec(serial.profile, Framing.RS485)
    for _ in range(3):
        (reply,) = serial.board.receive(command(serial))
        assert codec.decode(reply).index == serial.index


def test_address_0_is_accepted_too_and_no_other(profile: str, rig: MakeRig) -> None:
    serial = rig(profile)
    codec = reply_codec(serial.profile, Framing.RS485)

    def sent_to(address: int) -> list[bytes]:
        body = bytes([address]) + command(serial, mode=ON)[1:-4]
        return serial.board.receive(body + crc32_mpeg2(body))

    assert [len(sent_to(address)) for address in (0x41, 0xFF, 0x43)] == [0, 0, 0]
    # Not answered only, but obeyed.
    for _ in range(70):
        (reply,) = sent_to(0x00)
        serial.wait()
    assert codec.decode(reply).status & STATUS["M1R"]
    assert len(sent_to(0x42)) == 1


def test_one_reply_per_valid_command(profile: str, rig: MakeRig) -> None:
    serial = rig(profile)
    assert len(serial.board.receive(b"".join(command(serial) for _ in range(5)))) == 5
    assert serial.board.receive(b"") == []


def test_a_command_may_arrive_byte_by_byte(profile: str, rig: MakeRig) -> None:
    serial = rig(profile)
    frame = command(serial)
    replies = [serial.board.receive(frame[k : k + 1]) for k in range(len(frame))]
    assert [len(reply) for reply in replies] == [0] * (len(frame) - 1) + [1]


def test_damaged_commands_get_no_reply(profile: str, rig: MakeRig) -> None:
    serial = rig(profile)
    for position in range(len(command(serial))):
        damaged = bytearray(command(serial))
        damaged[position] ^= 0x10
        assert serial.board.receive(bytes(damaged)) == []
        # What it leaves behind does not hide the next command.
        assert len(serial.board.receive(command(serial))) == 1


@settings(max_examples=examples(60), deadline=None)
@given(
    profile=st.sampled_from(list(PROFILES)),
    garbage=st.lists(
        st.one_of(st.binary(max_size=60), st.just(b"\x42\x24"), st.just(b"\x42\x28"), st.just(b"B"))
    ),
)
def test_garbage_is_skipped(profile: str, garbage: list[bytes]) -> None:
    serial = Rig(load_robot("bench1"), profile)
    for part in garbage:
        assert serial.board.receive(part) == []
    assert len(serial.board.receive(command(serial))) == 1
    assert serial.ask().index > 0


def test_spi_frames_on_the_serial_line_mean_nothing(profile: str, rig: MakeRig) -> None:
    serial = rig(profile)
    assert serial.board.receive(serial.frame(mode=ON)) == []
    assert len(serial.board.receive(command(serial))) == 1


def test_the_first_valid_spi_frame_disables_rs485_until_reset(profile: str, rig: MakeRig) -> None:
    serial = rig(profile)
    serial.board.transfer(bytes(serial.profile.frame_size))  # not a valid one
    assert len(serial.board.receive(command(serial))) == 1
    serial.wait()
    serial.board.transfer(serial.frame())
    for _ in range(3):
        assert serial.board.receive(command(serial)) == []
    serial.run(2)
    serial.board.power_off()
    assert serial.board.receive(command(serial)) == []
    serial.board.power_on()
    assert len(serial.board.receive(command(serial))) == 1


def test_the_watchdog_and_the_motors_do_not_care_which_line(profile: str, rig: MakeRig) -> None:
    serial = rig(profile)
    serial.calibrate()
    serial.ask(mode=ON, timeout_ms=20, iq_ff_a=0.5)
    serial.wait(19)
    assert serial.robot.plant.motor_velocity_rad_s[0] > 1.0
    serial.wait(2)
    assert serial.ask(mode=ON).status & 0xF == 2


@pytest.mark.parametrize("first", [b"\x42", b"\x42\x28", b"\x00" * 39])
def test_a_reboot_forgets_half_a_command(rig: MakeRig, first: bytes) -> None:
    serial = rig("arm")
    serial.board.receive(first)
    serial.board.power_off()
    serial.board.power_on()
    assert len(serial.board.receive(command(serial))) == 1
