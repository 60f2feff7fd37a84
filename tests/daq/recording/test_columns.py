"""The vectorised decoder against the scalar codec, which has captures to stand on."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from acceptance import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sessions import make_session
from strategies import frame_values

from daq.boards.board import Outcome
from daq.recording.layout import COLUMNS, ColumnAxis
from daq.samples.columns import VALID_OUTCOMES, ColumnDecoder
from firmware_protocol.codec import command_codec, reply_codec
from firmware_protocol.fields import Framing
from firmware_protocol.profiles import PROFILES, profile_named
from hw_mocks.faults.script import FaultKind, FaultScript, ScriptedFault

Array = np.ndarray[Any, np.dtype[Any]]
OUTCOMES = list(Outcome)
AS_ON_THE_WIRE = ("iq_ff_a", "kp_a_per_rad", "kd_a_s_per_rad", "isat_a")
ONLY_ARM = {"input_power_w", "winding_temperature_degc", "ki_a_per_rad_s", "bus_voltage_v"}

every_wire = pytest.mark.parametrize(
    ("profile", "framing"), [(p, f.value) for p in PROFILES for f in Framing]
)


class Exchange(NamedTuple):
    outcome: int
    command: Any
    reply: Any


def exchanges(profile: str, framing: str) -> st.SearchStrategy[list[tuple[Exchange, Exchange]]]:
    wire = profile_named(profile), Framing(framing)
    one = st.builds(
        Exchange,
        st.sampled_from(OUTCOMES),
        frame_values(command_codec(*wire)),
        frame_values(reply_codec(*wire)),
    )
    return st.lists(st.tuples(one, one), min_size=1, max_size=3)


def pack(
    decoder: ColumnDecoder, cycles: list[tuple[Exchange, Exchange]], offsets: list[float]
) -> Array:
    info = decoder.session.boards[0]
    wire = profile_named(info.profile), Framing(info.framing)
    encode = command_codec(*wire).encode, reply_codec(*wire).encode
    layout = decoder.layout
    samples = [
        b"".join(
            (
                layout.pack_timing(number, number * 1_000_000, 1, 2, 3, 0, 3),
                layout.pack_joints(offsets, [2] * 4, [True] * 4),
                *(
                    bytes([exchange.outcome])
                    + encode[0](exchange.command)
                    + encode[1](exchange.reply)
                    for exchange in cycle
                ),
            )
        )
        for number, cycle in enumerate(cycles)
    ]
    return layout.view(b"".join(samples))


def close(a: Any, b: Any) -> bool:
    return bool(np.allclose(a, b, rtol=1e-12, atol=1e-12, equal_nan=True))


@every_wire
@settings(max_examples=examples(30))
@given(data=st.data())
def test_every_value_is_the_scalar_codecs(profile: str, framing: str, data: st.DataObject) -> None:
    decoder = ColumnDecoder(make_session(profile=profile, framing=framing))
    cycles = data.draw(exchanges(profile, framing))
    offsets = data.draw(st.lists(st.floats(-1e4, 1e4), min_size=4, max_size=4))
    columns = decoder.decode(pack(decoder, cycles, offsets))
    wire = profile_named(profile), Framing(framing)
    commands, replies = command_codec(*wire), reply_codec(*wire)
    wrap_rad = 2 * math.tau * wire[0].behaviour.position_wrap_turns
    robot = decoder.robot
    boards = [board.name for board in robot.boards]
    for row, cycle in enumerate(cycles):
        decoded = [
            (e.outcome, commands.decode(commands.encode(e.command)),
             replies.decode(replies.encode(e.reply)))
            for e in cycle
        ]  # fmt: skip
        for place, (outcome, command, reply) in enumerate(decoded):
            is_valid = outcome in VALID_OUTCOMES
            assert columns["board_outcome"][row, place] == outcome
            assert columns["board_status"][row, place] == (reply.status if is_valid else 0)
            assert columns["board_timestamp_ms"][row, place] == (
                reply.timestamp_ms if is_valid else 0
            )
            assert columns["command_mode"][row, place] == (
                0 if outcome == Outcome.NO_EXCHANGE else command.mode
            )
            if profile == "arm":
                expected = reply.bus_voltage_v if is_valid else math.nan  # type: ignore[attr-defined]
                assert close(columns["bus_voltage_v"][row, place], expected)
        for number, joint in enumerate(robot.joints):
            drive, motor = joint.drive, joint.drive.output - 1
            outcome, command, reply = decoded[boards.index(drive.board)]
            is_valid = outcome in VALID_OUTCOMES
            side = drive.direction / drive.gear_reduction
            constant = robot.motor_of(joint).torque_constant_nm_per_a
            torque = drive.direction * constant * drive.gear_reduction * drive.gear_efficiency
            measured = {
                "joint_position_rad": side * (reply.motor_position_rad[motor] + offsets[number]),
                "joint_velocity_rad_s": side * reply.motor_velocity_rad_s[motor],
                "joint_torque_nm": torque * reply.iq_a[motor],
                "iq_a": reply.iq_a[motor],
            }
            commanded = {name: getattr(command, name)[motor] for name in AS_ON_THE_WIRE}
            commanded["reference_velocity_rad_s"] = side * command.motor_velocity_rad_s[motor]
            if profile == "arm":
                for name in ("input_power_w", "winding_temperature_degc"):
                    measured[name] = getattr(reply, name)[motor]
                commanded["ki_a_per_rad_s"] = command.ki_a_per_rad_s[motor]  # type: ignore[attr-defined]
            if not reply.status & (1 << 13, 1 << 11)[motor]:
                measured["joint_position_rad"] = math.nan  # not calibrated: it reads zero
            for name, value in measured.items():
                assert close(columns[name][row, number], value if is_valid else math.nan), name
            for name, value in commanded.items():
                expected = math.nan if outcome == Outcome.NO_EXCHANGE else value
                assert close(columns[name][row, number], expected), name
            assert columns["joint_valid"][row, number] == is_valid
            reference = columns["reference_position_rad"][row, number]
            if outcome == Outcome.NO_EXCHANGE:
                assert math.isnan(reference)
                continue
            motor_rad = reference / side - offsets[number]
            wraps = (motor_rad - command.motor_position_rad[motor]) / wrap_rad
            assert wraps == pytest.approx(round(wraps), abs=1e-6)
            if is_valid:
                distance = motor_rad - reply.motor_position_rad[motor]
                assert abs(distance) <= wrap_rad / 2 * (1 + 1e-6)


@every_wire
def test_columns_are_those_of_the_format(profile: str, framing: str) -> None:
    decoder = ColumnDecoder(make_session(profile=profile, framing=framing))
    columns = decoder.decode(np.zeros(3, decoder.layout.dtype))
    assert set(columns) == set(COLUMNS) - (set() if profile == "arm" else ONLY_ARM)
    widths = {ColumnAxis.NONE: (), ColumnAxis.JOINTS: (4,), ColumnAxis.BOARDS: (2,)}
    for name, column in columns.items():
        assert column.shape == (3, *widths[COLUMNS[name].axis])
        assert column.dtype.kind == np.dtype(COLUMNS[name].dtype).kind
    floats = {name for name in columns if COLUMNS[name].dtype.startswith("<f")}
    assert set(decoder.grids) == floats


def test_nothing_gives_empty_columns(decoder: ColumnDecoder) -> None:
    columns = decoder.decode(np.zeros(0, decoder.layout.dtype))
    assert {len(column) for column in columns.values()} == {0}
    assert all(len(part) == 0 for part in decoder.invalid_frames(np.zeros(0, decoder.layout.dtype)))


def test_a_reference_across_the_rollover_stays_at_the_motor(decoder: ColumnDecoder) -> None:
    """Motor and reference turn past 128 turns, where the wire jumps by 256; a reply is lost."""
    wrap_rad = 256 * math.tau
    motor_rad = 128 * math.tau + np.linspace(-20.0, 20.0, 41)
    reference_rad = motor_rad + 3.0
    on_wire = [(a + wrap_rad / 2) % wrap_rad - wrap_rad / 2 for a in (motor_rad, reference_rad)]
    command = command_codec(profile_named("arm"))
    reply = reply_codec(profile_named("arm"))
    parts = []
    for row, (position, reference) in enumerate(zip(*on_wire, strict=True)):
        outcome = 6 if row in (0, 19, 20, 21, 22) else 0
        frames = Exchange(
            outcome,
            command.make(motor_position_rad=(reference, reference)),
            reply.make(status=1 << 13 | 1 << 11 | 1 << 4, motor_position_rad=(position, position)),
        )
        # While replies are lost, the loop does not know that the motor has turned on.
        last = max((r for r in range(row + 1) if r not in (0, 19, 20, 21, 22)), default=1)
        offset = motor_rad[last] - on_wire[0][last]
        parts.append(pack(decoder, [(frames, frames)], [float(offset)] * 4))
    columns = decoder.decode(np.concatenate(parts))
    side = np.array([j.drive.direction / j.drive.gear_reduction for j in decoder.robot.joints])
    expected = reference_rad[:, None] * side
    assert np.allclose(columns["reference_position_rad"], expected, atol=1e-6)
    position = columns["joint_position_rad"]
    assert np.isnan(position[[0, 19, 20, 21, 22]]).all()
    is_valid = columns["joint_valid"][:, 0] == 1
    assert np.allclose(position[is_valid], (motor_rad[:, None] * side)[is_valid], atol=1e-6)


def test_grids_are_powers_of_two_below_an_eighth_of_the_wires_resolution(
    decoder: ColumnDecoder, samples: Array
) -> None:
    for name, grids in decoder.grids.items():
        for grid in grids:
            assert math.frexp(grid)[0] == 0.5, name
    drive = decoder.robot.joints[0].drive
    for name, lsb in {
        "joint_position_rad": math.tau * 2**-24 / drive.gear_reduction,
        "iq_a": 2**-10,
        "bus_voltage_v": 2**-9,
        "winding_temperature_degc": 1.0,
    }.items():
        assert lsb / 16 < decoder.grids[name][0] <= lsb / 8
    # In single precision the grid is still there: rounding to it is the only loss.
    for name, grids in decoder.grids.items():
        values = decoder.decode(samples)[name]
        rounded = np.rint(values / grids) * grids
        assert np.array_equal(rounded.astype(COLUMNS[name].dtype), rounded, equal_nan=True)


def test_replies_that_are_not_used_are_kept_as_bytes(run_mock: Callable[..., Array]) -> None:
    session = make_session()
    script = FaultScript(
        [
            ScriptedFault(kind=FaultKind.FLIP, at_s=0.1, board=1, direction="reply"),
            ScriptedFault(kind=FaultKind.STUCK_LOW, at_s=0.2, for_s=0.003, board=0),
        ]
    )
    samples = run_mock(session, 300, script=script)
    found = ColumnDecoder(session).invalid_frames(samples)
    is_corrupt = samples["outcome_1"] == Outcome.CORRUPT
    assert is_corrupt.sum() == 1
    row = int(np.flatnonzero(is_corrupt)[0])
    (place,) = np.flatnonzero((found.seq == row) & (found.board == 1))
    assert np.array_equal(found.frame[place], samples["reply_1"][row])
    assert (np.diff(found.seq.astype(int)) >= 0).all()
    # A silent line has no bytes to keep.
    is_silent = samples["outcome_0"] == Outcome.SILENT
    assert is_silent.sum() == 3
    assert not set(found.seq[found.board == 0]) & set(samples["seq"][is_silent])
