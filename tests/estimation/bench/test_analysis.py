"""From a recording's file to a result: the truth, the same every time, or plain words."""

from __future__ import annotations

import itertools
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import msgspec
import numpy as np
import pytest
from acceptance import IS_LONG
from bench_records import BenchTest, Part, Plant, make_robot

from daq.recording import RecordingError, open_recording
from daq.recording import bench_events as ev
from daq.recording.bench_events import LoadArm
from estimation.bench import analysis, record
from estimation.bench.analysis import BenchAnalysis, analyse_bench, explain_end
from estimation.bench.record import JointRecord, read_record
from estimation.bench.report.page import make_page
from estimation.bench.report.picture import BenchPicture
from estimation.bench.result import BenchResult, BenchWarning, Cause, EstimatedQuantity, Plateau
from estimation.bench.result_file import read_result, write_result
from estimation.errors import DatasetError

pytestmark = pytest.mark.chain

SPEEDS_RAD_S = (6.0, 14.0, 31.0, 72.0, 141.0)
PLANT = Plant(cogging_nm=1e-3, give_way=0.4, ripple=0.005, static_nm=0.122)


def analyse(path: Path, *, is_held: bool = False) -> BenchAnalysis:
    if is_held:
        with h5py.File(path, "r+") as file:
            file.attrs["board_is_reference_advanced"] *= 0
    return analyse_bench(path, made_by="0.1.0")


def swept(
    plant: Plant = PLANT, *, seed: int = 0, drift_per_s: float = 0.0, **how: Any
) -> BenchTest:
    bench = BenchTest(plant, seed=seed, noise_a=how.pop("noise_a", 10e-3), **how)
    bench.drift_per_s = drift_per_s
    return bench.sweep(SPEEDS_RAD_S, repetitions=2, dwell_s=0.4)


def refusal(path: Path, code: str | None = None) -> str:
    with pytest.raises((DatasetError, RecordingError)) as raised:
        analyse(path)
    assert code in (None, raised.value.code), raised.value
    text = str(raised.value)
    assert str(path) in text
    assert "\n" not in text
    return text


def check_drawn(result: BenchResult, picture: BenchPicture) -> str:
    """Figure and page can be made of it; gives the page, which has the figure in it."""
    page = make_page(result, picture)
    assert "<svg" in page
    return page


@pytest.fixture(scope="module")
def whole(made_once: Callable[..., Path]) -> Path:
    """A test with everything: sweep, ramps, steps. Not to be changed."""

    def fill(directory: Path) -> None:
        bench = swept()
        for number in range(10):
            bench.ramp(-1.0 if number % 2 else 1.0)
        for number in range(6):
            bench.step(-0.4 if number % 2 else 0.4)
        bench.write(directory / "joint1.h5", truth=bench.truth, repetitions=2)

    return made_once("bench-whole", fill) / "joint1.h5"


@pytest.fixture(scope="module")
def analysed(whole: Path) -> BenchAnalysis:
    return analyse(whole)


# --- reading --------------------------------------------------------------------------------------


def lose_a_few(part: Part, inside: slice) -> None:
    """Two samples are not valid, three are not in the recording at all."""
    for name in ("angle_rad", "velocity_rad_s", "iq_a"):
        part[name][inside.start + 3 : inside.start + 5] = math.nan
    for name in part:
        part[name] = np.delete(part[name], np.s_[inside.start + 20 : inside.start + 23])


@pytest.mark.parametrize(
    ("joint", "text", "has_optional", "is_of_0_1"),
    [
        ("joint1", make_robot(), True, True),
        ("joint1", make_robot(direction=-1, efficiency=0.7), False, False),
        ("joint3", make_robot(robot="laas4", direction=-1), True, False),
        ("joint3", make_robot(robot="laas4", direction=-1), False, True),
    ],
)
def test_a_file_is_read_as_the_joint_it_is_of(
    tmp_path: Path, *, joint: str, text: str, has_optional: bool, is_of_0_1: bool
) -> None:
    bench = BenchTest(
        text=text,
        joint=joint,
        has_optional=has_optional,
        has_plateau_data=not is_of_0_1,
        jitter=0.1,
    )
    bench.plateau(20.0)
    bench.plateau(-20.0, fault=lose_a_few)
    bench.plateau(40.0, unsettled="it oscillates: try --kp 1")
    bench.ramp(1.0)
    bench.step(-0.4)
    bench.swings(LoadArm(mass_kg=1.0, length_m=0.1), count=2)
    with open_recording(bench.write(tmp_path / "a.h5")) as recording:
        found = read_record(recording)
    expected = bench.record()
    for name in JointRecord.__dataclass_fields__:
        one, other = getattr(found, name), getattr(expected, name)
        if isinstance(other, np.ndarray):
            np.testing.assert_allclose(one, other, rtol=2e-7, atol=1e-9, err_msg=name)
        else:
            assert one == other, name
    assert found.missing == 3
    assert found.drive.k_i_nm_per_a == pytest.approx(0.0275664, rel=1e-5)


def test_parts_that_were_interrupted_end_where_the_next_event_is(tmp_path: Path) -> None:
    bench = BenchTest()
    for _ in range(5):
        bench.plateau(20.0)
    spans = bench.record().plateaus
    begins = [event for event in bench.events if event[1] == ev.PLATEAU]
    first_end = bench.events[2]
    events = [*bench.events[:2], first_end, begins[1], begins[2]]
    events += [(spans[2].end, ev.PROBLEM, "broken"), begins[3]]
    with open_recording(bench.write(tmp_path / "a.h5", events=events)) as recording:
        found = read_record(recording)
    assert [(span.begin, span.end) for span in found.plateaus] == [
        (spans[0].begin, spans[0].end),
        (spans[1].begin, spans[2].begin),
        (spans[2].begin, spans[2].end),
        (spans[3].begin, len(found.t_s) - 1),
    ]
    assert [span.settled for span in found.plateaus] == [spans[0].settled, None, None, None]
    assert [span.cause for span in found.plateaus] == [None, *[Cause.INTERRUPTED] * 3]
    assert found.problem == "broken"


# --- the truth ------------------------------------------------------------------------------------


def check_true(quantity: EstimatedQuantity | None, *, rel: float) -> None:
    assert quantity is not None
    assert quantity.truth is not None
    assert quantity.low is not None
    assert quantity.high is not None
    assert quantity.value == pytest.approx(quantity.truth, rel=rel)
    margin = 0.5 * (quantity.high - quantity.low)  # one in twenty lies outside, but not far
    assert quantity.low - margin <= quantity.truth <= quantity.high + margin


def test_everything_that_is_true_is_found(analysed: BenchAnalysis) -> None:
    result = analysed.result
    assert result.model == "coulomb_viscous"
    assert [model.name for model in result.models if model.is_selected] == [result.model]
    for name in ("f_nm", "f_motor_nm"):
        check_true(getattr(result, name), rel=0.01)
    for name in ("b_eq_nms", "b_joint_nms"):
        check_true(getattr(result, name), rel=0.06)
    for name in ("inertia_kg_m2", "inertia_joint_kg_m2"):
        check_true(getattr(result, name), rel=0.02)
    for name in ("breakaway_nm", "breakaway_motor_nm"):
        check_true(getattr(result, name), rel=0.04)
    assert result.plateaus_used == len(result.plateaus) == 20
    assert result.warnings == ()
    assert not result.drift_is_significant
    assert (result.joint, result.robot, result.motor) == ("joint1", "bench1", "mn4004")
    assert (result.recording, result.made_by, result.link) == ("joint1.h5", "0.1.0", "mock")
    assert result.rate_hz == pytest.approx(1000.0, rel=1e-3)


@pytest.mark.parametrize(("direction", "efficiency"), [(-1, 1.0), (1, 0.7), (-1, 0.5)])
def test_the_way_the_motor_turns_and_losses_of_the_gear(
    tmp_path: Path, direction: int, efficiency: float
) -> None:
    bench = swept(text=make_robot(direction=direction, efficiency=efficiency))
    result, _ = analyse(bench.write(tmp_path / "a.h5", truth=bench.truth))
    check_true(result.f_nm, rel=0.01)
    check_true(result.b_eq_nms, rel=0.06)
    assert result.f_nm is not None
    assert result.f_motor_nm is not None
    assert result.f_motor_nm.value == pytest.approx(result.f_nm.value / 31.0 / efficiency)
    assert result.b_eq_nms is not None
    assert result.b_joint_nms is not None
    assert result.b_joint_nms.value == pytest.approx(result.b_eq_nms.value * 31.0**2 * efficiency)


def test_one_joint_of_an_arm(tmp_path: Path) -> None:
    text = make_robot(robot="laas4")
    bench = swept(text=text, joint="joint3", has_optional=False)
    result, picture = analyse(bench.write(tmp_path / "a.h5"))
    assert (result.joint, result.robot) == ("joint3", "laas4")
    assert result.f_nm is not None
    assert result.f_nm.value == pytest.approx(bench.plant.f_nm, rel=0.01)
    assert result.temperature_degc is None
    assert result.bus_voltage_v is None
    assert result.energy_j is None
    # No truth is needed.
    assert result.f_nm.truth is None
    assert result.torque_constant_nm_per_a.truth is None
    page = check_drawn(result, picture)
    assert "truth " not in page
    assert "the interval" not in page


def test_a_held_reference_is_corrected_where_the_board_holds_it(tmp_path: Path) -> None:
    path = swept().write(tmp_path / "a.h5")
    plain, corrected = (analyse(path, is_held=is_held).result for is_held in (False, True))
    for one, other in zip(plain.plateaus, corrected.plateaus, strict=True):
        assert one.iq_correction_a == 0.0
        assert one.iq_a is not None
        assert other.iq_a == pytest.approx(one.iq_a + other.iq_correction_a)
        assert other.iq_correction_a * other.joint_velocity_rad_s > 0.0


def test_conditions_are_those_of_the_plateaus(analysed: BenchAnalysis) -> None:
    result = analysed.result
    powers = [plateau.energy_j for plateau in result.plateaus if plateau.energy_j is not None]
    assert result.energy_j == pytest.approx(sum(powers))
    volts = [plateau.bus_voltage_v for plateau in result.plateaus]
    assert result.bus_voltage_v == (min(volts), max(volts))  # type: ignore[type-var]
    warm = [plateau.winding_temperature_degc for plateau in result.plateaus]
    assert result.temperature_degc == (warm[0], warm[-1])


def test_a_mounted_joint_from_its_file(tmp_path: Path) -> None:
    bench = BenchTest(Plant(gravity_nm=2.0), noise_a=5e-3)
    low, high = -0.405, 0.405
    turns = 31.0 * (high - low) / (2.0 * math.pi) + 0.1
    for speed_rad_s in (8.0, 15.0, 25.0, 40.0):
        for sign in (1.0, -1.0):
            bench.turn_to(31.0 * (low if sign > 0.0 else high) - sign * 3.0)
            bench.plateau(sign * speed_rad_s, settle_s=3.0 / speed_rad_s, turns=turns)
    path = bench.write(tmp_path / "a.h5", kind="mounted", window_rad=(low, high), truth=bench.truth)
    result, picture = analyse(path)
    assert result.plateaus_used == 8
    check_true(result.f_nm, rel=0.05)
    check_drawn(result, picture)


def test_a_load_arm_from_its_file(tmp_path: Path) -> None:
    arm = LoadArm(mass_kg=1.5, length_m=0.2)
    bench = BenchTest(Plant(saturation_per_a2=0.007), period_s=4e-3).swings(arm)
    path = bench.write(tmp_path / "a.h5", kind="load_arm", load_arm=arm, truth=bench.truth)
    result, picture = analyse(path)
    assert result.f_nm is None
    assert result.torque_constant_nm_per_a.value == pytest.approx(0.0275664, rel=0.005)
    assert result.torque_constant_drop is not None
    assert result.torque_constant_drop.value == pytest.approx(
        result.torque_constant_drop.truth, abs=0.005
    )
    assert picture.load_current_a is not None
    assert "Torque constant of joint1" in check_drawn(result, picture)


# --- the same every time --------------------------------------------------------------------------


def test_the_same_bytes_give_the_same_result(
    whole: Path, analysed: BenchAnalysis, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    copy = Path(shutil.copy(whole, tmp_path / "elsewhere" / "joint1.h5"))
    again = analyse(copy)
    assert msgspec.json.encode(again.result) == msgspec.json.encode(analysed.result)
    for name in BenchPicture.__dataclass_fields__:
        one, other = getattr(again.picture, name), getattr(analysed.picture, name)
        if name == "model_curves":
            assert list(one) == list(other)
            one, other = list(one.values()), list(other.values())
        np.testing.assert_array_equal(one, other)
    write_result(tmp_path / "result.json", analysed.result)
    assert read_result(tmp_path / "result.json") == analysed.result


def rejected(number: int, cause: Cause, like: Plateau) -> Plateau:
    reason = f"text {number}"
    return msgspec.structs.replace(like, number=number, is_used=False, cause=cause, reason=reason)


def test_of_reasons_that_are_as_common_the_first_is_told(analysed: BenchAnalysis) -> None:
    """A bug: the order of a set decided, which differs from one process to the next."""
    like = analysed.result.plateaus[0]
    plateaus = [rejected(number, cause, like) for number, cause in enumerate(Cause, 1)]
    assert analysis._why(plateaus) == "1 × text 1 (plateau 1)"


def test_reasons_that_differ_in_their_numbers_are_the_same(analysed: BenchAnalysis) -> None:
    """A bug: `2.3% of its samples` and `2.4% of its samples` were counted as two reasons."""
    like = analysed.result.plateaus[0]
    slip, invalid = Cause.SLIP, Cause.INVALID_SAMPLES
    causes = [slip, invalid, invalid, slip, invalid]
    plateaus = [rejected(number, cause, like) for number, cause in enumerate(causes, 1)]
    assert analysis._why(plateaus) == "3 × text 2 (plateau 2)"


# --- what is no result ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small() -> BenchTest:
    return BenchTest().sweep((20.0, 60.0), repetitions=2, settle_s=0.02)


def test_files_that_are_no_recordings(tmp_path: Path, whole: Path) -> None:
    refusal(tmp_path / "none.h5", "unreadable")
    (tmp_path / "text.h5").write_text("hello")
    refusal(tmp_path / "text.h5", "not-hdf5")
    data = whole.read_bytes()
    for share in (0.1, 0.5, 0.95):
        (tmp_path / "cut.h5").write_bytes(data[: round(share * len(data))])
        refusal(tmp_path / "cut.h5")


PLANS = {
    "broken": ('{"kind": "free", ', ""),
    "empty": ("{}", "`kind`"),
    "list": ("[1, 2]", "`array`"),
    "words": ("<script>alert(1)</script>", ""),
    "deep": ("[" * 100_000, ""),
}


@pytest.mark.parametrize("name", PLANS)
def test_plans_that_cannot_be_read(small: BenchTest, tmp_path: Path, name: str) -> None:
    plan, text = PLANS[name]
    assert text in refusal(small.write(tmp_path / "a.h5", plan=plan, rows=10), "unreadable-plan")


def test_recordings_of_something_else(small: BenchTest, tmp_path: Path) -> None:
    text = refusal(small.write(tmp_path / "a.h5", plan=""), "not-a-bench-test")
    assert "`armature bench friction`" in text
    assert "joint9" in refusal(small.write(tmp_path / "b.h5", joint="joint9"), "no-such-joint")
    assert "'mad'" in refusal(small.write(tmp_path / "c.h5", kind="mad"), "unreadable-plan")
    refusal(small.write(tmp_path / "d.h5", events=[]), "few-plateaus")
    arm = LoadArm(mass_kg=1.0, length_m=0.1)
    refusal(small.write(tmp_path / "e.h5", kind="load_arm", load_arm=arm), "few-swings")


def test_a_recording_that_is_far_too_long(
    small: BenchTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "SAMPLES_MAX", 100)
    assert " 100" in refusal(small.write(tmp_path / "a.h5"), "too-many-samples")


def test_a_recording_without_samples(small: BenchTest, tmp_path: Path) -> None:
    """A bug: its events pointed at samples that were not there."""
    problem = (0, ev.PROBLEM, "the board cannot be reached")
    path = small.write(tmp_path / "a.h5", rows=0, more_events=[problem])
    assert problem[2] in refusal(path, "no-samples")
    assert explain_end(path) == ""


def test_a_test_that_was_cut_short(small: BenchTest, tmp_path: Path) -> None:
    """A bug: events after the last sample ended in an IndexError; the rest went unmentioned."""
    rows = len(small.column("seq"))
    begins = [seq for seq, kind, _ in small.events if kind == ev.PLATEAU]
    for share in (0.01, 0.3, 0.6):
        refusal(small.write(tmp_path / f"{share}.h5", rows=round(share * rows)), "few-plateaus")
    path = small.write(tmp_path / "most.h5", rows=begins[7] + 20)
    result, picture = analyse(path)
    assert result.plateaus_used == 7
    assert result.plateaus[7].cause is Cause.TOO_FEW_SAMPLES
    assert np.isfinite(picture.fit_nm).sum() > 100
    events = [event for event in small.events if event[0] < begins[6]]
    result, _ = analyse(small.write(tmp_path / "quiet.h5", rows=begins[6], events=events))
    assert (result.warning_kinds, len(result.warnings)) == ((BenchWarning.ENDED_EARLY,), 1)
    assert "6 of 8" in result.warnings[0]


def test_nothing_but_rejected_plateaus(tmp_path: Path) -> None:
    bench = BenchTest(limit_a=0.14)
    bench.sweep((20.0, 60.0), repetitions=2)
    path = bench.write(tmp_path / "a.h5", more_events=[(10**6, ev.PROBLEM, "smoke")])
    text = refusal(path, "few-plateaus")
    assert "8 × " in text
    assert "0.14" in text
    assert text.endswith(": smoke")


def test_one_direction_only(tmp_path: Path) -> None:
    bench = BenchTest()
    for speed_rad_s in SPEEDS_RAD_S:
        bench.plateau(speed_rad_s)
    assert "1 directions" in refusal(bench.write(tmp_path / "a.h5"), "few-plateaus")


def test_a_load_arm_that_was_not_finished(tmp_path: Path) -> None:
    arm = LoadArm(mass_kg=1.5, length_m=0.2)
    bench = BenchTest(period_s=4e-3).swings(arm, count=4)
    events = [*bench.events[:-1], (bench.events[-1][0], ev.PROBLEM, "it fell off")]
    path = bench.write(tmp_path / "a.h5", kind="load_arm", load_arm=arm, events=events)
    text = refusal(path, "few-swings")
    assert "4 swings" in text
    assert text.endswith(": it fell off")


# --- drift and warnings ---------------------------------------------------------------------------


@pytest.mark.parametrize("percent", [6.0, -4.0])
def test_drift_is_found(tmp_path: Path, percent: float) -> None:
    duration_s = swept().record().t_s[-1]
    bench = swept(drift_per_s=0.01 * percent / duration_s)
    result, _ = analyse(bench.write(tmp_path / "a.h5"))
    assert result.drift_is_significant
    assert result.drift_percent == pytest.approx(percent, rel=0.25)
    assert result.warning_kinds == (BenchWarning.DRIFT,)
    assert f"{result.drift_percent:+.1f} %" in result.warnings[0]


def test_no_drift_is_seldom_called_one(tmp_path: Path) -> None:
    significant = 0
    for seed in range(12 if IS_LONG else 5):
        bench = swept(Plant(), seed=seed)
        result, _ = analyse(bench.write(tmp_path / f"{seed}.h5"))
        significant += result.drift_is_significant
        assert abs(result.drift_percent) < 1.0
        assert result.warnings == ()
    assert significant <= 1


def test_friction_without_viscosity_is_told(tmp_path: Path) -> None:
    bench = swept(Plant(b_nms=0.0))
    result, _ = analyse(bench.write(tmp_path / "a.h5"))
    assert result.warning_kinds == (BenchWarning.NO_VISCOUS_FRICTION,)
    assert "(-" in result.warnings[0]  # the interval reaches below zero


def test_whatever_else_there_is_to_say(tmp_path: Path) -> None:
    bench = swept(Plant())
    bench.plateau(6.0, fault=lose_a_few)
    for _ in range(10):
        bench.plateau(6.0, turns=0.5)
    path = bench.write(tmp_path / "a.h5", more_events=[(10**6, ev.PROBLEM, "smoke")])
    result, _ = analyse(path)
    assert (result.plateaus_used, result.plateaus_rejected) == (21, 10)
    said = dict(zip(result.warning_kinds, result.warnings, strict=True))
    assert list(said) == [BenchWarning.REJECTED, BenchWarning.MISSING, BenchWarning.ENDED_EARLY]
    rejections, missing, problem = said.values()
    assert rejections.startswith("10 of 31 plateaus ")
    assert "10 × " in rejections
    assert missing.startswith("3 samples ")
    assert problem.endswith(": smoke")


def test_few_rejected_plateaus_are_no_warning_unless_the_gear_slips(tmp_path: Path) -> None:
    def slip(part: Part, inside: slice) -> None:
        part["iq_a"][inside] *= 0.2

    bench = swept(Plant())
    bench.plateau(6.0, turns=0.5)
    assert analyse(bench.write(tmp_path / "a.h5")).result.warnings == ()
    bench.plateau(6.0, fault=slip)
    result, _ = analyse(bench.write(tmp_path / "b.h5"))
    assert result.warning_kinds == (BenchWarning.SLIP,)
    assert result.warnings[0].startswith("1 of 22 plateaus: 1 × ")


# --- the picture ----------------------------------------------------------------------------------


def test_the_picture_fits_together(analysed: BenchAnalysis) -> None:
    result, picture = analysed
    assert 1000 < len(picture.t_s) <= 3000
    grid = picture.band_motor_velocity_rad_s
    assert (np.diff(grid) > 0.0).all()
    np.testing.assert_allclose(grid, -grid[::-1])
    assert grid[-1] == pytest.approx(141.0, rel=0.01)
    moving = grid != 0.0
    assert np.isnan(picture.fit_nm[~moving]).all()
    assert np.isfinite(picture.fit_nm[moving]).all()
    assert (picture.band_low_nm[moving] < picture.fit_nm[moving]).all()
    assert (picture.band_high_nm[moving] > picture.fit_nm[moving]).all()
    true_nm = PLANT.b_nms * grid + PLANT.f_nm / 31.0 * np.sign(grid)
    np.testing.assert_allclose(picture.fit_nm[moving], true_nm[moving], rtol=0.01)
    assert set(picture.model_curves) == {"asymmetric", "stribeck"}
    for curve in picture.model_curves.values():
        assert curve.shape == grid.shape
    assert "joint1.h5" in check_drawn(result, picture)


def test_what_is_left_by_angle_is_cogging(analysed: BenchAnalysis) -> None:
    picture = analysed.picture
    for residual_nm in (picture.forward_residual_nm, picture.backward_residual_nm):
        known = np.isfinite(residual_nm)
        assert known.mean() > 0.9
        phase = 72.0 * picture.angle_rad[known]
        columns = np.column_stack([np.sin(phase), np.cos(phase), np.ones(len(phase))])
        (sine, _, level), *_ = np.linalg.lstsq(columns, residual_nm[known], rcond=None)
        assert sine == pytest.approx(PLANT.cogging_nm, rel=0.15)
        assert level == pytest.approx(0.0, abs=5e-5)


# --- texts from elsewhere -------------------------------------------------------------------------

EVIL = "<script>alert('x')</script>"
TEXTS = {
    "script": EVIL,
    "long": "x" * 300_000,
    "unicode": "\u202e\U0001f4a5 \u0430\u0301\ufeff \x1b[31m\r\t$\\frac{1}{0}$ %s {0} ✓",
    "lines": "one\ntwo\n\nthree: four: five",
    "empty": "",
    "colons": ": : : ",
    "speed": "plateau: +1.2.3 rad/s",
    "exponent": "plateau: +e rad/s",
    "signs": "plateau: +-+- rad/s",
    "infinite": "plateau: +1e999 rad/s",
}


@pytest.mark.parametrize("first", [0, 3, 6])
def test_no_text_of_an_event_does_harm(tmp_path: Path, first: int) -> None:
    """A bug: a speed that was none ended in a ValueError of `float`."""
    bench = BenchTest(has_plateau_data=True)
    bench.sweep((20.0, 60.0), repetitions=2, settle_s=0.02)
    bench.plateau(40.0, unsettled="dull", settle_s=0.02)
    texts = itertools.islice(itertools.cycle(TEXTS.values()), first, None)
    events = [(seq, kind, next(texts)) for seq, kind, _ in bench.events]
    more = [(5, "note", EVIL), (10**6, ev.PROBLEM, "".join(TEXTS.values()))]
    result, picture = analyse(bench.write(tmp_path / "a.h5", events=events, more_events=more))
    assert result.plateaus_used == 8
    assert not result.plateaus[8].is_used
    assert result.plateaus[8].reason
    if not first:
        page = check_drawn(result, picture)
        assert EVIL not in page
        assert page.count("<script>") == 1
    write_result(tmp_path / "result.json", result)
    assert read_result(tmp_path / "result.json") == result


def test_the_end_of_a_failed_test_is_explained(tmp_path: Path) -> None:
    def jump(part: Part, inside: slice) -> None:
        part["angle_rad"][-200:] += 30.0

    bench = BenchTest()
    bench.plateau(20.0, fault=jump)
    text = explain_end(bench.write(tmp_path / "a.h5"))
    assert "30 rad" in text
    bench = BenchTest()
    bench.plateau(20.0)
    assert explain_end(bench.write(tmp_path / "b.h5")) == ""
