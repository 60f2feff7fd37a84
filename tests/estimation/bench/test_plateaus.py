"""From samples to plateaus: means against known friction, and a reason for whatever is rejected."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.signal
from acceptance import examples
from bench_records import Array, BenchTest, Fault, Part, Plant
from hypothesis import given, settings
from hypothesis import strategies as st

from daq.samples.columns import behaviour_of
from estimation.bench import rejection
from estimation.bench.plateaus import find_plateaus
from estimation.bench.record import JointRecord
from estimation.bench.rejection import reject_slipping
from estimation.bench.result import Cause, Plateau
from estimation.bench.window import mean_over_angle
from firmware_protocol.profiles import UOMODRI

COGGING = Plant(cogging_nm=1e-3, give_way=0.4)
SLOW_RAD_S = 1.6
CALM_RAD_S = 30.0
"""Up to here samples follow the cogging; beyond, it may alias to a constant (`daq.bench.plan`)."""
MEASURED = ("angle_rad", "velocity_rad_s", "iq_a")


def found(record: JointRecord, *, is_reference_held: bool = False) -> list[Plateau]:
    behaviour = replace(record.behaviour, is_reference_advanced=not is_reference_held)
    return reject_slipping(find_plateaus(replace(record, behaviour=behaviour)))


def only(bench: BenchTest, **header: Any) -> Plateau:
    (plateau,) = found(bench.record(**header))
    return plateau


def friction_a(bench: BenchTest, speed_rad_s: float) -> float:
    """Current of friction at a constant speed."""
    torque_nm = bench.plant.friction_nm(np.array(speed_rad_s), bench.drive)
    return float(torque_nm) / bench.drive.k_i_nm_per_a


def window_of(record: JointRecord, plateau: Plateau) -> slice:
    assert plateau.window_s is not None
    first_s, last_s = plateau.window_s
    first, last = np.searchsorted(record.t_s, [first_s - 1e-9, last_s + 1e-9])
    return slice(int(first), int(last))


# --- means ----------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(0.01, 1.0)), min_size=2, max_size=20))
def test_the_mean_over_the_angle_is_an_integral_over_it(rows: list[tuple[float, float]]) -> None:
    values, steps = np.array(rows).T
    angle = np.cumsum(steps)
    expected = scipy.integrate.trapezoid(values, angle) / (angle[-1] - angle[0])
    assert mean_over_angle(values, angle) == pytest.approx(expected, abs=1e-12)
    assert mean_over_angle(values, -angle) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("speed_rad_s", [SLOW_RAD_S, -SLOW_RAD_S, 0.7])
def test_speed_that_gives_way_to_cogging_leaves_friction_as_it_is(speed_rad_s: float) -> None:
    bench = BenchTest(COGGING)
    bench.plateau(speed_rad_s)
    record = bench.record()
    plateau = only(bench)
    rows = window_of(record, plateau)
    slowest, fastest = np.quantile(np.abs(record.velocity_rad_s[rows]), [0.02, 0.98])
    assert slowest < 0.75 * abs(speed_rad_s)
    assert fastest > 1.25 * abs(speed_rad_s)
    friction = friction_a(bench, speed_rad_s)
    noise = bench.noise_a / math.sqrt(rows.stop - rows.start)
    assert plateau.iq_a is not None
    assert abs(plateau.iq_a - friction) < 4.0 * noise + 1e-3 * abs(friction)
    over_time = float(np.mean(record.iq_a[rows]))
    assert over_time / friction > 1.01  # longer where cogging holds it, and needs more current
    assert plateau.is_used, plateau.reason


@settings(max_examples=examples(40))
@given(
    speed_rad_s=st.floats(0.5, CALM_RAD_S),
    sign=st.sampled_from([1.0, -1.0]),
    give_way=st.floats(0.0, 0.4),
    cogging_nm=st.floats(0.0, 2e-3),
    jitter=st.floats(0.0, 0.3),
    seed=st.integers(0, 1000),
)
def test_friction_is_the_mean_whatever_the_cogging(
    *, speed_rad_s: float, sign: float, give_way: float, cogging_nm: float, jitter: float, seed: int
) -> None:
    plant = Plant(cogging_nm=cogging_nm, give_way=give_way)
    bench = BenchTest(plant, jitter=jitter, seed=seed, noise_a=0.0)
    bench.plateau(sign * speed_rad_s, turns=8.05 if speed_rad_s > 5.0 else 1.01)
    plateau = only(bench)
    assert plateau.iq_a is not None
    assert plateau.iq_a == pytest.approx(friction_a(bench, sign * speed_rad_s), rel=0.02)
    assert plateau.motor_velocity_rad_s == pytest.approx(sign * speed_rad_s, rel=0.01)


@pytest.mark.parametrize("speed_rad_s", [0.4, -0.6])
def test_counts_that_kick_the_current_do_not_bias_it(speed_rad_s: float) -> None:
    bench = BenchTest(Plant(), kd_a_s_per_rad=0.044, noise_a=0.0)
    bench.plateau(speed_rad_s)
    record, plateau = bench.record(), only(bench)
    rows = window_of(record, plateau)
    over_counts = mean_over_angle(record.iq_a[rows], record.angle_rad[rows])
    friction = friction_a(bench, speed_rad_s)
    assert abs(over_counts / friction - 1.0) > 3e-3
    assert plateau.iq_a == pytest.approx(friction, rel=5e-4)


@pytest.mark.parametrize(("turns", "whole"), [(1.02, 1), (1.5, 1), (2.97, 2), (9.6, 9)])
def test_only_whole_turns_count(turns: float, whole: int) -> None:
    def uneven(part: Part, inside: slice) -> None:
        part["iq_a"] += 0.05 * np.sin(part["angle_rad"])

    bench = BenchTest(Plant(), noise_a=0.0)
    bench.plateau(5.0, turns=turns, fault=uneven)
    record, plateau = bench.record(), only(bench)
    assert plateau.turns == whole
    assert plateau.iq_a == pytest.approx(friction_a(bench, 5.0), rel=3e-3)
    first, *_, last = record.angle_rad[window_of(record, plateau)]
    step_rad = 5.0 * bench.period_s + bench.drive.count_rad
    assert 0.0 <= last - first - whole * 2.0 * math.pi <= step_rad
    assert plateau.window_s is not None
    assert plateau.window_s[0] == pytest.approx(plateau.start_s + 0.1)
    assert plateau.settle_s == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("speed_rad_s", "dwell_s", "uneven"), [(SLOW_RAD_S, 0.0, 0.0), (20.0, 1.0, 0.0), (60.0, 2, 0.1)]
)
def test_sigma_is_the_scatter_over_repetitions(
    speed_rad_s: float, dwell_s: float, uneven: float
) -> None:
    """`uneven`: friction differs from turn to turn."""
    bench = BenchTest(COGGING, noise_a=20e-3, seed=3)

    def vary(part: Part, inside: slice) -> None:
        turn = np.floor(part["angle_rad"] / (2.0 * math.pi)).astype(int)
        levels = 1.0 + uneven * bench.random.normal(size=turn.max() - turn.min() + 1)
        part["iq_a"] *= levels[turn - turn.min()]

    repetitions = 80
    for _ in range(repetitions):
        bench.plateau(speed_rad_s, dwell_s=dwell_s, fault=vary, settle_s=0.01)
    plateaus = found(bench.record())
    scatter = float(np.std([plateau.iq_a for plateau in plateaus], ddof=1))
    sigma = math.sqrt(float(np.mean([(plateau.iq_sigma_a or 0.0) ** 2 for plateau in plateaus])))
    assert 1.0 / 1.5 < sigma / scatter < 1.5


def test_what_stands_beside_a_plateau() -> None:
    def step(part: Part, inside: slice) -> None:
        middle = (inside.start + inside.stop) // 2
        part["input_power_w"][:] = 3.0
        part["input_power_w"][middle:] = 5.0
        part["input_power_w"][inside.start + 5] = math.nan
        part["temperature_degc"][:] = 41.5
        part["bus_voltage_v"][:] = 23.25

    bench = BenchTest(jitter=0.2)
    bench.plateau(20.0, turns=10.02, fault=step)
    plateau = only(bench)
    assert plateau.window_s is not None
    assert plateau.input_power_w == pytest.approx(4.0, abs=0.02)
    duration_s = plateau.window_s[1] - plateau.window_s[0]
    assert plateau.energy_j == pytest.approx(4.0 * duration_s, rel=0.005)
    assert plateau.winding_temperature_degc == pytest.approx(41.5)
    assert plateau.bus_voltage_v == pytest.approx(23.25)
    assert plateau.motor_torque_nm == pytest.approx(bench.drive.k_i_nm_per_a * (plateau.iq_a or 0))


def test_a_board_that_tells_no_more_than_it_must() -> None:
    bench = BenchTest(has_optional=False)
    bench.plateau(20.0)
    plateau = only(bench)
    assert plateau.is_used
    for name in ("winding_temperature_degc", "bus_voltage_v", "input_power_w", "energy_j"):
        assert getattr(plateau, name) is None

    def silent(part: Part, inside: slice) -> None:
        part["input_power_w"][inside] = math.nan

    bench = BenchTest()
    bench.plateau(20.0, fault=silent)
    assert only(bench).energy_j is None


def test_repetitions_are_numbered() -> None:
    bench = BenchTest().sweep([20.0, 40.0], repetitions=3)
    plateaus = found(bench.record(repetitions=3))
    assert [plateau.number for plateau in plateaus] == list(range(1, 13))
    assert [plateau.repetition for plateau in plateaus] == [1] * 4 + [2] * 4 + [3] * 4


# --- a reference that is held between frames ------------------------------------------------------


def hold_reference(
    periods_s: Array, speed_rad_s: float, kp_a_per_rad: float, mean_a: float
) -> Part:
    """What a board measures: a sawtooth through a low-pass of 1 kHz, looked at before each frame.

    Computed in steps of 4 µs. Between frames the motor turns on and the reference does not, so
    that the current falls by Kp·ω·T; its mean over time is what friction takes.
    """
    step_s = 4e-6
    frames = np.concatenate([[0], np.cumsum(np.rint(periods_s / step_s).astype(int))])
    steps = np.arange(frames[-1])
    frame = np.searchsorted(frames, steps, side="right") - 1
    fallen_a = kp_a_per_rad * speed_rad_s * (steps + 0.5 - frames[frame]) * step_s
    current_a = mean_a + np.mean(fallen_a) - fallen_a
    share = 1.0 - math.exp(-2.0 * math.pi * 1000.0 * step_s)
    filtered_a = scipy.signal.lfilter([share], [1.0, share - 1.0], current_a - mean_a) + mean_a
    t_s = frames[1:] * step_s
    return {
        "t_s": t_s,
        "angle_rad": speed_rad_s * t_s,
        "velocity_rad_s": np.full(len(t_s), speed_rad_s),
        "iq_a": filtered_a[frames[1:] - 1],
        "reference_rad_s": np.full(len(t_s), speed_rad_s),
        "kp_a_per_rad": np.full(len(t_s), kp_a_per_rad),
        "limit_a": np.full(len(t_s), 9.0),
    }


PERIODS_MS = {
    "regular": lambda random: np.full(3000, 1.0),
    "jitter": lambda random: random.uniform(0.7, 1.3, 3000),
    "skipped now and then": lambda random: random.choice([1.0, 1.0, 1.0, 2.0], 3000),
    "serial port": lambda random: random.choice([2.0, 3.0, 4.0, 6.0], 1500),
    "slow": lambda random: np.full(1000, 4.0),
}


@pytest.mark.parametrize("speed_rad_s", [150.0, -40.0])
@pytest.mark.parametrize("periods", PERIODS_MS)
def test_a_held_reference_is_corrected(periods: str, speed_rad_s: float) -> None:
    """A bug: irregular periods were corrected by a sixth too much, on a serial port."""
    periods_s = 1e-3 * PERIODS_MS[periods](np.random.default_rng(1))
    kp, mean_a = 0.13, math.copysign(0.14, speed_rad_s)
    bench = BenchTest()
    bench.add_samples(hold_reference(periods_s, speed_rad_s, kp, mean_a), settled=50)
    held, advanced = (
        found(bench.record(), is_reference_held=is_held)[0] for is_held in (True, False)
    )
    bias_a = kp * speed_rad_s * (np.mean(periods_s) / 2.0 - 1.0 / (2.0 * math.pi * 1000.0))
    assert held.iq_correction_a == pytest.approx(bias_a, rel=0.03)
    assert held.iq_a == pytest.approx(mean_a, abs=0.03 * abs(bias_a))
    assert advanced.iq_correction_a == 0.0
    assert advanced.iq_a is not None
    assert abs(advanced.iq_a) < abs(mean_a) - 0.9 * abs(bias_a)


def as_stated(record: JointRecord) -> JointRecord:
    """The same of a board whose recording states when it replies and obeys: at once."""
    stated = behaviour_of(UOMODRI, wire_s=0.0)
    behaviour = replace(stated, reply_age_max_s=0.0, law_period_s=0.0)
    # It was never late: what is sent is where the motor should be by then.
    return replace(record, behaviour=behaviour, reference_rad=record.angle_rad)


@pytest.mark.parametrize("speed_rad_s", [150.0, -40.0])
@pytest.mark.parametrize("periods", PERIODS_MS)
def test_it_is_corrected_by_when_commands_were_sent(periods: str, speed_rad_s: float) -> None:
    periods_s = 1e-3 * PERIODS_MS[periods](np.random.default_rng(1))
    kp, mean_a = 0.13, math.copysign(0.14, speed_rad_s)
    bench = BenchTest()
    bench.add_samples(hold_reference(periods_s, speed_rad_s, kp, mean_a), settled=50)
    (plateau,) = reject_slipping(find_plateaus(as_stated(bench.record())))
    bias_a = kp * speed_rad_s * np.mean(periods_s) / 2.0
    assert plateau.iq_a == pytest.approx(mean_a, abs=0.01 * abs(bias_a))


@pytest.mark.parametrize(
    ("share", "cause"), [(0.0, None), (0.15, None), (0.6, Cause.SKIPPED), (0.8, Cause.SKIPPED)]
)
def test_with_too_many_periods_skipped_nobody_knows_what_the_motor_did(
    share: float, cause: Cause | None
) -> None:
    random = np.random.default_rng(1)
    periods_s = 1e-3 * random.geometric(1.0 - share, 3000)
    bench = BenchTest()
    bench.add_samples(hold_reference(periods_s, 50.0, 0.13, 0.14), settled=50)
    (plateau,) = find_plateaus(as_stated(bench.record()))
    assert plateau.cause is cause


@pytest.mark.parametrize(("per_s", "cause"), [(0.0, None), (10.0, None), (100.0, Cause.SKIPPED)])
def test_what_lies_next_to_a_slow_exchange_does_not_count(
    per_s: float, cause: Cause | None
) -> None:
    """When in it the board was asked nobody knows; here its current is wrong for a while after."""
    random = np.random.default_rng(1)
    mean_a = 0.14
    bench = BenchTest()
    bench.add_samples(hold_reference(np.full(4000, 1e-3), 50.0, 0.13, mean_a), settled=50)
    record = as_stated(bench.record())
    transfer_s, iq_a = record.transfer_s.copy(), record.iq_a.copy()
    for row in np.flatnonzero(random.random(len(iq_a)) < per_s * 1e-3):
        transfer_s[row] += 2e-3
        iq_a[row : row + 15] += 0.1
    (plateau,) = find_plateaus(replace(record, transfer_s=transfer_s, iq_a=iq_a))
    assert plateau.cause is cause
    if cause is None:
        assert plateau.iq_a == pytest.approx(mean_a, rel=0.02)


# --- reasons --------------------------------------------------------------------------------------


def lose(part: Part, rows: slice | Array) -> None:
    for name in MEASURED:
        part[name][rows] = math.nan


def lose_share(share: float) -> Fault:
    def fault(part: Part, inside: slice) -> None:
        rows = np.arange(inside.start, inside.stop)
        lose(part, rows[np.random.default_rng(0).random(len(rows)) < share])

    return fault


def lose_time(duration_s: float) -> Fault:
    def fault(part: Part, inside: slice) -> None:
        middle = (inside.start + inside.stop) // 2
        lose(part, slice(middle, middle + round(duration_s / 1e-3)))

    return fault


def drop_time(duration_s: float) -> Fault:
    """The samples are not even in the recording."""

    def fault(part: Part, inside: slice) -> None:
        middle = (inside.start + inside.stop) // 2
        for name in part:
            part[name] = np.delete(part[name], np.s_[middle : middle + round(duration_s / 1e-3)])

    return fault


def keep_few(part: Part, inside: slice) -> None:
    lose(part, slice(inside.start + 9, inside.stop))


def jump(rad: float) -> Fault:
    def fault(part: Part, inside: slice) -> None:
        part["angle_rad"][(inside.start + inside.stop) // 2 :] += rad

    return fault


def dip(level: float, share: float) -> Fault:
    def fault(part: Part, inside: slice) -> None:
        length = inside.stop - inside.start
        part["iq_a"][inside.start : inside.start + round(share * length)] *= level

    return fault


def dips(level: float) -> Fault:
    def fault(part: Part, inside: slice) -> None:
        length = inside.stop - inside.start
        for place in (0.2, 0.7):
            first = inside.start + round(place * length)
            part["iq_a"][first : first + length // 8] *= level

    return fault


def limit(share: float) -> Fault:
    def fault(part: Part, inside: slice) -> None:
        part["limit_a"][:] = abs(np.mean(part["iq_a"])) / share

    return fault


def wave(name: str, amplitude: float) -> Fault:
    def fault(part: Part, inside: slice) -> None:
        part[name] += amplitude * np.sin(2.0 * math.pi * 40.0 * part["t_s"])

    return fault


def creep(change: float) -> Fault:
    def fault(part: Part, inside: slice) -> None:
        part["iq_a"][inside] *= 1.0 + change * np.linspace(0.0, 1.0, inside.stop - inside.start)

    return fault


SPEED_RAD_S = 20.0
REMEDY = re.compile(
    r"; check the (encoder|board|gear)|; measure longer \(--dwell\)|try --kp [\d.]+ --kd [\d.]+$|"
    r"drive it slower \(--speed-max\)|wait longer \(--settle-max\)|; let the joint run in"
)
REJECTED: dict[str, tuple[Cause, dict[str, Any], str]] = {
    "not settled": (Cause.NOT_SETTLED, {"unsettled": ""}, r"\b3\.1 s"),
    "given up": (
        Cause.NOT_SETTLED,
        {"unsettled": "the current still changes by 3 mA: wait longer (--settle-max)"},
        r" 3 mA",
    ),
    "no whole turn": (Cause.NO_WHOLE_TURN, {"turns": 0.8, "dwell_s": 0}, r" 5\.0"),
    "encoder gap": (Cause.ENCODER_GAP, {"fault": jump(0.5)}, r"0\.[45]\d+ rad\b.* 1\.0 ms"),
    "invalid": (Cause.INVALID_SAMPLES, {"fault": lose_share(0.05)}, r"^\d\.\d%.* 2%"),
    "long gap": (Cause.INVALID_SAMPLES, {"fault": lose_time(0.08)}, r" 8\d ms.* 50 ms"),
    "missing": (Cause.INVALID_SAMPLES, {"fault": drop_time(0.3)}, r" 30\d ms.* 50 ms"),
    "hardly anything": (Cause.TOO_FEW_SAMPLES, {"fault": keep_few}, r": 9 "),
    "slip within": (Cause.SLIP, {"fault": dip(0.2, 0.2)}, r" 14\d "),
    "slip": (Cause.SLIP, {"fault": dip(0.3, 1.0)}, r" 4\d mA.* 14\d"),
    "saturated": (Cause.SATURATION, {"fault": limit(0.97)}, r"0\.14\d A.* 0\.1\d+ A"),
    "wrong speed": (
        Cause.SPEED,
        {"commanded_rad_s": 1.04 * SPEED_RAD_S},
        r" 20 rad/s.* 20\.8.* 3%",
    ),
    "current swings": (Cause.OSCILLATION, {"fault": wave("iq_a", 0.8)}, r"±0\.56"),
    "speed swings": (Cause.OSCILLATION, {"fault": wave("velocity_rad_s", 12.0)}, r"±8"),
    "drift": (Cause.DRIFT, {"fault": creep(0.2)}, r" 15\d\.\d.* 16\d"),
}
NOT_REJECTED: dict[str, dict[str, Any]] = {
    "a whole turn": {"turns": 1.01, "dwell_s": 0},
    "a jump of counts": {"fault": jump(0.01)},
    "few invalid": {"fault": lose_share(0.012)},
    "a short gap": {"fault": lose_time(0.04)},
    "few missing": {"fault": drop_time(0.04)},
    "a few dips": {"fault": dips(0.6)},
    "below the others": {"fault": dip(0.6, 1.0)},
    "below the limit": {"fault": limit(0.9)},
    "the board's own limit": {"fault": limit(math.inf)},
    "about the speed": {"commanded_rad_s": 1.02 * SPEED_RAD_S},
    "a wave": {"fault": wave("iq_a", 0.3)},
    "a wave of speed": {"fault": wave("velocity_rad_s", 5.0)},
    "hardly any drift": {"fault": creep(0.02)},
}


def driven(sign: float, noise_a: float = 5e-3, **middle: Any) -> list[Plateau]:
    """Three plateaus at the same speed, the second of them another."""
    bench = BenchTest(Plant(cogging_nm=1e-3, give_way=0.4), noise_a=noise_a)
    usual = {"dwell_s": 3.0}
    if "commanded_rad_s" in middle:
        middle["commanded_rad_s"] *= sign
    for changes in ({}, middle, {}):
        bench.plateau(sign * SPEED_RAD_S, **(usual | changes))
    return found(bench.record())


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("case", REJECTED)
def test_each_cause_has_its_reason(case: str, sign: float) -> None:
    cause, changes, text = REJECTED[case]
    before, plateau, after = driven(sign, **changes)
    assert not plateau.is_used
    assert plateau.cause is cause
    words = re.sub(r"(?<= )-(?=\d)", "", plateau.reason)  # the same in both directions
    assert re.search(text, words), plateau.reason
    assert REMEDY.search(words), plateau.reason
    for other in (before, after):
        assert other.is_used
        assert (other.cause, other.reason) == (None, "")


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("cause", NOT_REJECTED)
def test_less_than_that_is_no_reason(cause: str, sign: float) -> None:
    plateaus = driven(sign, **NOT_REJECTED[cause])
    assert [plateau.reason for plateau in plateaus] == ["", "", ""]
    assert all(plateau.is_used for plateau in plateaus)


@settings(max_examples=examples(30))
@given(
    speed_rad_s=st.floats(1.5, 160.0),
    sign=st.sampled_from([1.0, -1.0]),
    noise_a=st.floats(0.0, 0.03),
    jitter=st.floats(0.0, 0.5),
    ripple=st.floats(0.0, 0.03),
    invalid=st.floats(0.0, 0.01),
    seed=st.integers(0, 1000),
)
def test_a_sound_plateau_is_used(
    *,
    speed_rad_s: float,
    sign: float,
    noise_a: float,
    jitter: float,
    ripple: float,
    invalid: float,
    seed: int,
) -> None:
    plant = Plant(cogging_nm=1e-3 * (speed_rad_s < CALM_RAD_S), give_way=0.4, ripple=ripple)
    bench = BenchTest(plant, noise_a=noise_a, jitter=jitter, seed=seed, kd_a_s_per_rad=0.02)
    bench.plateau(sign * speed_rad_s, dwell_s=1.5, fault=lose_share(invalid))
    plateau = only(bench)
    assert plateau.reason == ""
    assert plateau.iq_a == pytest.approx(friction_a(bench, sign * speed_rad_s), rel=0.03)


def test_a_mounted_joint_may_carry_more_than_friction() -> None:
    """A bug: where gravity halves the current on the way, the gear was said to slip."""
    for gravity_nm, window_rad in ((1.0, (-0.4, 0.4)), (6.0, (-0.41, 0.4)), (3.0, (0.2, 1.01))):
        bench = BenchTest(Plant(gravity_nm=gravity_nm, cogging_nm=1e-3))
        low, high = window_rad
        for speed_rad_s, start_rad in ((10.0, low), (-10.0, high), (30.0, low), (-30.0, high)):
            bench.turn_to(bench.drive.reduction * start_rad - math.copysign(3.0, speed_rad_s))
            turns = bench.drive.reduction * (high - low) / (2.0 * math.pi) + 0.1
            bench.plateau(speed_rad_s, settle_s=3.0 / abs(speed_rad_s), turns=turns)
        plateaus = find_plateaus(bench.record(kind="mounted", window_rad=window_rad))
        joint_rad = np.linspace(low, high, 10_001)
        load_a = gravity_nm * np.mean(np.sin(joint_rad)) * bench.drive.load_to_motor
        load_a /= bench.drive.k_i_nm_per_a
        for plateau in plateaus:
            assert plateau.reason == ""
            assert plateau.motor_velocity_rad_s is not None
            expected = friction_a(bench, plateau.motor_velocity_rad_s) + load_a
            assert plateau.iq_a == pytest.approx(expected, abs=2e-3)


# --- whatever is in a record ----------------------------------------------------------------------


@st.composite
def spoilers(draw: st.DrawFn) -> Fault:
    """Damage at random, several times over."""
    kinds = ("lose", "freeze", "jump", "scale", "pause", "still", "drop", "reverse")
    damages = draw(
        st.lists(
            st.tuples(
                st.sampled_from(kinds),
                st.floats(0.0, 1.0),
                st.floats(0.0, 1.0),
                st.sampled_from([-1.0, 0.0, 7.0, -100.0, 1e6, 1e13]),
            ),
            min_size=1,
            max_size=3,
        )
    )

    def fault(part: Part, inside: slice) -> None:
        for kind, one, two, size in damages:
            length = len(part["t_s"])
            first, last = sorted((round(one * (length - 1)), round(two * (length - 1))))
            rows = slice(first, last + 1)
            if kind == "lose":
                lose(part, rows)
            elif kind == "freeze":
                part["angle_rad"][rows] = part["angle_rad"][first]
            elif kind == "jump":
                part["angle_rad"][first:] += size
            elif kind == "scale":
                part["iq_a"][rows] *= size
            elif kind == "pause":
                part["t_s"][first:] += abs(size) % 10.0
            elif kind == "still":
                part["angle_rad"][:] = part["angle_rad"][0]
            elif kind == "reverse":
                part["angle_rad"] *= -1.0
            elif kind == "drop" and last - first < length - 2:
                for name in part:
                    part[name] = np.delete(part[name], rows)

    return fault


@settings(max_examples=examples(150))
@given(
    fault=spoilers(),
    speed_rad_s=st.sampled_from([-30.0, 5.0, 20.0, 100.0]),
    window_rad=st.sampled_from([None, None, (-0.1, 0.2), (3.0, 2.0)]),
    is_held=st.booleans(),
)
def test_no_damage_breaks_the_analysis(
    fault: Fault, speed_rad_s: float, window_rad: tuple[float, float] | None, is_held: bool
) -> None:
    """A bug: an encoder that jumped far ended in a warning of NumPy."""
    bench = BenchTest()
    bench.plateau(speed_rad_s, settle_s=0.02, fault=fault)
    bench.plateau(20.0, settle_s=0.02)
    kind = "free" if window_rad is None else "mounted"
    plateaus = found(bench.record(kind=kind, window_rad=window_rad), is_reference_held=is_held)
    assert len(plateaus) == 2
    for plateau in plateaus:
        assert plateau.is_used == (plateau.reason == "")
        numbers = [getattr(plateau, name) for name in plateau.__struct_fields__]
        assert all(math.isfinite(number) for number in numbers if isinstance(number, float))
        if plateau.is_used:
            assert plateau.iq_a is not None
            assert plateau.iq_sigma_a is not None
            assert plateau.acceleration_rad_s2 is not None


def test_a_way_that_was_turned_while_nobody_looked() -> None:
    """A bug: a motor that stands but for a pause in which it turned ended in a warning of NumPy."""

    def fault(part: Part, settled: slice) -> None:
        middle = (settled.start + settled.stop) // 2
        part["angle_rad"][:] = part["angle_rad"][0]
        part["angle_rad"][middle:] += 7.0
        part["t_s"][middle:] += 1.0

    bench = BenchTest()
    bench.plateau(20.0, settle_s=0.02, fault=fault)
    bench.plateau(20.0, settle_s=0.02)
    plateau, _ = found(bench.record(kind="free", window_rad=None), is_reference_held=True)
    assert (plateau.is_used, plateau.iq_a) == (False, None)


def test_two_blocks_say_nothing_of_their_spread() -> None:
    """A bug: a plateau as short as that ended in a warning of NumPy, and was never drifting."""
    window = SimpleNamespace(
        record=SimpleNamespace(header=SimpleNamespace(window_rad=None)),
        blocks=lambda: np.array([0.10, 0.15]),
        noise_a=lambda: 1e-3,
    )
    assert rejection._check_drift(window, "")
    window.noise_a = lambda: 0.1
    assert not rejection._check_drift(window, "")
