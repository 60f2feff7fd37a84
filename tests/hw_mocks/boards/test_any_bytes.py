"""Whatever arrives, a board never breaks, and the next valid command is obeyed."""

from __future__ import annotations

from typing import Any

from acceptance import examples
from board_rig import ON, STATUS, Rig
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import raw_frames

from daq.robot import load_robot
from firmware_protocol.behaviour import ErrorsClear
from firmware_protocol.codec import command_codec
from firmware_protocol.fields import Framing
from firmware_protocol.profiles import PROFILES

BENCH = load_robot("bench1")


@st.composite
def sessions(draw: Any) -> tuple[str, list[tuple[str, bytes, int]]]:
    """A profile, and windows of it: line, bytes, steps to wait before."""
    name = draw(st.sampled_from(list(PROFILES)))
    profile = PROFILES[name]
    valid = {
        framing: raw_frames(profile.command).map(command_codec(profile, framing).encode_raw)
        for framing in Framing
    }
    window = st.one_of(
        st.tuples(st.just("spi"), st.one_of(st.binary(max_size=120), valid[Framing.SPI])),
        st.tuples(st.just("spi"), st.tuples(valid[Framing.SPI], st.integers(0, 40)).map(_cut)),
        st.tuples(st.just("rs485"), st.one_of(st.binary(max_size=120), valid[Framing.RS485])),
    )
    windows = draw(st.lists(st.tuples(window, st.integers(0, 60)), max_size=12))
    return name, [(line, data, steps) for (line, data), steps in windows]


def _cut(drawn: tuple[bytes, int]) -> bytes:
    frame, length = drawn
    return frame[:length]


@settings(max_examples=examples(150), deadline=None)
@given(session=sessions())
def test_any_sequence_of_windows_is_survived(
    session: tuple[str, list[tuple[str, bytes, int]]],
) -> None:
    name, windows = session
    rig = Rig(BENCH, name, calibration_s=0.005, is_torn=True)
    behaviour = rig.profile.behaviour
    clocked = answered = 0
    for line, data, steps in windows:
        rig.robot.advance_to(rig.robot.now_ns + steps * 250_000)
        if line == "spi":
            assert len(rig.board.transfer(data)) == len(data)
            clocked += len(data) // 2 * 2
        else:
            for reply in rig.board.receive(data):
                assert reply[0] == (0xFF if answered else 0x00)
                answered += 1
    if behaviour.is_receiver_shifted:
        rig.board.transfer(bytes(-clocked % rig.profile.frame_size))
    # An idle frame, then some that enable a motor, then idle ones: all are obeyed. The first words
    # of a reply may be those of the one before.
    rig.wait(1.0)
    rig.board.transfer(rig.frame())
    for mode, enabled in ((ON, STATUS["M1E"]), (0, 0)):
        rig.wait(1.0)
        reply = rig.run(4, mode=mode)[-1]
        assert rig.index - behaviour.reply_lag_max <= reply.index < rig.index
        assert reply.status & STATUS["M1E"] == enabled
    if behaviour.errors_clear is ErrorsClear.SYSTEM_DISABLED_ONE_FRAME:
        assert not reply.status & 0xF
