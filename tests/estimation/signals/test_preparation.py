from __future__ import annotations

import re
import resource
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import read_segments
from recording_maker import make_recording
from refusals import refused
from scipy import signal

from estimation.errors import DatasetError
from estimation.recordings.segment import Segment
from estimation.signals.preparation import (
    PreparationSettings,
    Prepared,
    average_periods,
    choose_settings,
    prepare,
)

RATE_HZ = 1000.0
COUNT_RAD = 2.0 * np.pi / 4096 / 30
INERTIA, VISCOUS, GRAVITY = 0.4, 0.8, 3.0


def motion(t_s: np.ndarray, *, f0_hz: float = 0.1, joints: int = 2, seed: int = 5) -> Any:
    """Angle, velocity and acceleration, shape (n, joints) each."""
    random = np.random.default_rng(seed)
    parts = []
    for _ in range(joints):
        k = np.arange(1, 6)[:, None]
        a, b = random.normal(size=(2, 5, 1)) / k
        omega = 2.0 * np.pi * f0_hz * k
        sine, cosine = np.sin(omega * t_s), np.cos(omega * t_s)
        parts.append(
            (
                (a * sine + b * cosine).sum(0),
                (omega * (a * cosine - b * sine)).sum(0),
                (-(omega**2) * (a * sine + b * cosine)).sum(0),
            )
        )
    return np.array(parts).transpose(1, 2, 0)


def torque(q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
    result: np.ndarray = INERTIA * ddq + VISCOUS * dq + GRAVITY * np.sin(q)
    return result


def make_segment(t_s: np.ndarray, **changes: Any) -> Segment:
    q, dq, ddq = motion(t_s)
    segment = Segment(
        source=Path("r.h5"),
        period_s=float(t_s[1] - t_s[0]),
        t_s=t_s,
        q_rad=q,
        dq_rad_s=dq,
        tau_nm=torque(q, dq, ddq),
        joint_names=("shoulder", "elbow"),
    )
    return replace(segment, **changes)


def times(seconds: float = 20.0, rate_hz: float = RATE_HZ) -> np.ndarray:
    return np.arange(round(seconds * rate_hz)) / rate_hz


def fitted(rows: Prepared) -> np.ndarray:
    """Inertia, viscous friction and gravity of the first joint."""
    columns = np.column_stack(
        [rows.ddq_rad_s2[:, 0], rows.dq_rad_s[:, 0], np.sin(rows.q_rad[:, 0])]
    )
    found: np.ndarray = np.linalg.lstsq(columns, rows.tau_nm[:, 0], rcond=None)[0]
    return found


def error_percent(rows: Prepared) -> float:
    truth = np.array([INERTIA, VISCOUS, GRAVITY])
    return 100.0 * float(np.abs(fitted(rows) / truth - 1.0).max())


# --- right rows -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["butterworth", "fft"])
@pytest.mark.parametrize("velocity", ["measured", "differentiated"])
def test_rows_are_those_of_the_motion(method: Any, velocity: Any):
    t_s = times()
    settings, _ = choose_settings([make_segment(t_s)], method=method, velocity=velocity)
    rows = prepare(make_segment(t_s), settings)
    q, dq, ddq = motion(rows.t_s)
    within = {"butterworth": 1e-6, "fft": 1e-3}[method]
    for name, truth in {"q_rad": q, "dq_rad_s": dq, "ddq_rad_s2": ddq}.items():
        assert np.abs(getattr(rows, name) - truth).max() < within * np.abs(truth).max() * 10.0
    np.testing.assert_array_equal(rows.tau_raw_nm, torque(q, dq, ddq))
    assert rows.t_s[0] == pytest.approx(0.7, abs=0.016)
    assert rows.period_s == pytest.approx(settings.decimation / RATE_HZ)
    assert rows.use.all()


def test_counts_and_noise_cost_little_and_the_choice_is_the_better_one():
    t_s, random = times(), np.random.default_rng(2)
    exact = make_segment(t_s)
    assert exact.dq_rad_s is not None
    coarse = replace(
        exact,
        q_rad=np.round(exact.q_rad / (20.0 * COUNT_RAD)) * 20.0 * COUNT_RAD,
        dq_rad_s=exact.dq_rad_s + random.normal(0.0, 1e-3, exact.q_rad.shape),
        tau_nm=exact.tau_nm + random.normal(0.0, 0.02, exact.q_rad.shape),
    )
    settings, notes = choose_settings([coarse])
    assert settings.velocity == "measured"
    assert any("agrees with the positions" in note for note in notes)
    chosen = error_percent(prepare(coarse, settings))
    other = error_percent(prepare(coarse, replace(settings, velocity="differentiated")))
    assert chosen < 0.3
    assert other > chosen


def test_differences_of_second_order_are_those_of_the_seed():
    t_s = times()
    segment = make_segment(t_s)
    settings, _ = choose_settings([segment], velocity="differentiated", differences="second")
    rows = prepare(segment, settings)
    # (ωh)²/6 of a velocity and (ωh)²/12 of an acceleration are lost, and no more.
    sixth = prepare(segment, replace(settings, differences="sixth"))
    _, dq, ddq = motion(rows.t_s)
    for name, truth in {"dq_rad_s": dq, "ddq_rad_s2": ddq}.items():
        error, less = (np.abs(getattr(part, name) - truth).max() for part in (rows, sixth))
        assert 10.0 * less < error < 1e-4 * np.abs(truth).max()


@pytest.mark.parametrize(("noise_rad", "rate_hz"), [(1e-4, 125.0), (3e-4, 125.0), (1e-3, 1000.0)])
def test_noisy_positions_lower_the_cut_off(noise_rad: float, rate_hz: float):
    random = np.random.default_rng(3)
    exact = make_segment(times(40.0, rate_hz), dq_rad_s=None)
    segment = replace(exact, q_rad=exact.q_rad + random.normal(0.0, noise_rad, exact.q_rad.shape))
    settings, notes = choose_settings([segment])
    assert 4.0 <= settings.cutoff_hz < 12.0
    assert any("noise of the positions disturbs accelerations" in note for note in notes)
    wide, _ = choose_settings([segment], cutoff_hz=15.0)
    chosen, other = (error_percent(prepare(segment, each)) for each in (settings, wide))
    assert chosen < 1.0
    assert other > 2.0 * chosen
    clean, notes = choose_settings([exact])
    assert clean.cutoff_hz == 15.0
    assert not any("disturbs" in note for note in notes)


def test_a_noisy_velocity_is_left_for_the_positions():
    exact = make_segment(times())
    assert exact.dq_rad_s is not None
    noisy = np.random.default_rng(2).normal(0.0, 0.1, exact.q_rad.shape)
    settings, notes = choose_settings([replace(exact, dq_rad_s=exact.dq_rad_s + noisy)])
    assert settings.velocity == "differentiated"
    assert any("less noise than the measured one" in note for note in notes)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda dq: 1.03 * dq, "(shoulder|elbow) is 1.030 times"),
        (lambda dq: np.concatenate([dq[:2], dq[:-2]]), r"\+(1\.[6-9]|2\.[0-2])\d ms late"),
        (lambda dq: -dq, "ms late"),
        (lambda dq: dq[:, ::-1], "velocity from the positions"),
    ],
)
def test_a_velocity_that_is_not_that_of_the_positions_is_not_used(change: Any, text: str):
    exact = make_segment(times())
    settings, notes = choose_settings([replace(exact, dq_rad_s=change(exact.dq_rad_s))])
    assert settings.velocity == "differentiated"
    assert any(re.search(text, note) for note in notes)


def test_the_known_lags_of_the_board_are_taken_out():
    fine = make_segment(times(rate_hz=16_000.0))
    assert fine.dq_rad_s is not None

    def lagging(values: np.ndarray, lag_s: float) -> np.ndarray:
        share = 1.0 - np.exp(-1.0 / 16_000.0 / lag_s)
        state = (1.0 - share) * values[:1]
        filtered, _ = signal.lfilter([share], [1.0, share - 1.0], values, axis=0, zi=state)
        result: np.ndarray = filtered[::16]
        return result

    segment = make_segment(
        times(),
        q_rad=np.round(fine.q_rad[::16] / COUNT_RAD) * COUNT_RAD,
        dq_rad_s=lagging(fine.dq_rad_s, 1.6e-3),
        tau_nm=lagging(fine.tau_nm, 0.16e-3),
        velocity_lag_s=1.6e-3,
        torque_lag_s=0.16e-3,
    )
    settings, notes = choose_settings([segment])
    assert settings.velocity == "measured", notes
    assert error_percent(prepare(segment, settings)) < 0.02
    unknown = replace(segment, velocity_lag_s=0.0, torque_lag_s=0.0)
    assert error_percent(prepare(unknown, settings)) > 0.3


# --- borders --------------------------------------------------------------------------------------


def test_untrimmed_borders_ruin_what_is_right_inside():
    t_s = times(6.0)
    q, dq, ddq = (part * 4.0 for part in motion(t_s, f0_hz=0.4))
    segment = make_segment(t_s, q_rad=q, dq_rad_s=dq, tau_nm=torque(q, dq, ddq))
    settings, _ = choose_settings([segment], velocity="differentiated", cutoff_hz=15.0)
    trimmed = error_percent(prepare(segment, settings))
    untrimmed = error_percent(prepare(segment, replace(settings, trim_s=0.0)))
    assert trimmed < 0.1
    assert untrimmed > 10.0 * trimmed
    assert untrimmed > 1.0


def test_pieces_give_the_same_rows_as_the_whole(tmp_path: Path):
    t_s = times(12.3)
    random = np.random.default_rng(1)
    q, dq, ddq = motion(t_s, joints=4)
    columns = {
        "joint_position_rad": q + random.normal(0.0, 1e-3, q.shape),
        "joint_velocity_rad_s": dq + random.normal(0.0, 1e-2, q.shape),
        "joint_torque_nm": torque(q, dq, ddq) + random.normal(0.0, 0.1, q.shape),
    }
    path = make_recording(tmp_path / "r.h5", columns)
    (whole,) = read_segments(path)
    chosen = [choose_settings([whole], velocity=each)[0] for each in ("measured", "differentiated")]
    for rows_max in (4000, 7919):
        parts = list(read_segments(path, rows_max=rows_max))
        assert len(parts) > 1
        for settings in chosen:
            expected = prepare(whole, settings)
            pieces = [prepare(part, settings) for part in parts]
            for name in ("t_s", "q_rad", "dq_rad_s", "ddq_rad_s2", "tau_nm", "tau_raw_nm"):
                values = np.concatenate([getattr(piece, name) for piece in pieces])
                np.testing.assert_allclose(values, getattr(expected, name), atol=1e-6)


def test_short_pieces_at_the_ends_do_not_let_a_border_in(tmp_path: Path):
    t_s = times(4.0)
    q, dq, *_ = motion(t_s, joints=4)
    columns = {"joint_position_rad": q, "joint_velocity_rad_s": dq}
    path = make_recording(tmp_path / "r.h5", columns)
    (whole,) = read_segments(path)
    settings, _ = choose_settings([whole], velocity="differentiated")
    parts = [prepare(part, settings) for part in read_segments(path, rows_max=300)]
    found = np.concatenate([part.t_s for part in parts])
    np.testing.assert_allclose(found, prepare(whole, settings).t_s)


def test_nothing_is_left_of_a_segment_that_is_all_border():
    settings, _ = choose_settings([make_segment(times())])
    rows = prepare(make_segment(times(1.0)), settings)
    assert len(rows) == 0
    assert rows.q_rad.shape == rows.use.shape == rows.ddq_rad_s2.shape == (0, 2)


# --- the rest -------------------------------------------------------------------------------------


def test_joints_that_hardly_move_do_not_count():
    segment = make_segment(times())
    settings, _ = choose_settings([segment], exclude_slow_rad_s=0.2)
    rows = prepare(segment, settings)
    np.testing.assert_array_equal(rows.use, np.abs(rows.dq_rad_s) >= 0.2)
    assert 0.0 < rows.use.mean() < 1.0


def test_defaults_follow_rate_and_content():
    settings, notes = choose_settings([make_segment(times())])
    assert (settings.cutoff_hz, settings.decimation) == (15.0, 16)
    assert settings.trim_s == pytest.approx(0.7)
    assert "content ends at" in notes[0]
    faster, _ = choose_settings([make_segment(times(rate_hz=5000.0))], cutoff_hz=30.0)
    assert faster.decimation == 41
    _, notes = choose_settings([make_segment(times())], cutoff_hz=0.3)
    assert any("takes from the motion" in note for note in notes)


def test_periods_are_averaged():
    t_s = times(52.0)
    q, dq, ddq = motion(t_s)
    noise = np.random.default_rng(3).normal(0.0, 0.5, q.shape)
    segment = make_segment(t_s, tau_nm=torque(q, dq, ddq) + noise)
    settings, _ = choose_settings([segment], decimation=20)
    every = prepare(segment, settings)
    average = average_periods(every, 10.0)
    assert average.periods == 5
    rows = average.prepared
    assert len(rows) == 500
    noise_nm = float(np.std(rows.tau_nm - torque(*motion(rows.t_s))))
    scatter_nm = every.tau_nm[:2500].reshape(5, 500, -1).std(axis=0, ddof=1)
    assert noise_nm == pytest.approx(float(scatter_nm.mean()) / np.sqrt(5.0), rel=0.2)
    assert fitted(rows) == pytest.approx([INERTIA, VISCOUS, GRAVITY], rel=0.02)
    with refused(DatasetError, "period-not-whole-rows", "10.011 s"):
        average_periods(prepare(segment, settings), 10.011)
    with refused(DatasetError, "less-than-a-period"):
        average_periods(prepare(segment, settings), 60.0)


def test_two_minutes_of_four_joints_take_little_memory():
    t_s = times(120.0)
    q = np.tile(np.sin(t_s)[:, None], (1, 4))
    segment = make_segment(t_s, q_rad=q, dq_rad_s=q, tau_nm=q)
    settings = PreparationSettings(cutoff_hz=20.0, decimation=12, trim_s=0.7, velocity="measured")
    prepare(make_segment(times()), settings)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    prepare(segment, settings)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10


@pytest.mark.parametrize(
    ("call", "code", "values"),
    [
        (lambda s: choose_settings([]), "few-rows", ()),
        (lambda s: choose_settings([s], cutoff_hz=600.0), "bad-cutoff", ("600 Hz", "500 Hz")),
        (lambda s: choose_settings([s], decimation=0), "bad-settings", ("decimation 0", "1")),
        (lambda s: choose_settings([s], trim_s=-1.0), "bad-settings", ("trim_s -1.0",)),
        (
            lambda s: choose_settings([replace(s, dq_rad_s=None)], velocity="measured"),
            "no-velocity",
            (),
        ),
        (
            lambda s: choose_settings([s, replace(s, period_s=2e-3)]),
            "different-rates",
            ("500", "1000"),
        ),
        (
            lambda s: prepare(
                replace(s, dq_rad_s=None),
                PreparationSettings(cutoff_hz=15, decimation=1, trim_s=1, velocity="measured"),
            ),
            "no-velocity",
            (),
        ),
        (
            lambda s: prepare(
                s, PreparationSettings(cutoff_hz=501, decimation=1, trim_s=1, velocity="measured")
            ),
            "bad-cutoff",
            ("501 Hz", "500 Hz"),
        ),
    ],
)
def test_what_cannot_be_is_refused(call: Any, code: str, values: tuple[str, ...]):
    with refused(DatasetError, code, *values):
        call(make_segment(times()))


def test_without_a_measured_velocity_there_is_no_choice():
    segment = make_segment(times(), dq_rad_s=None)
    settings, notes = choose_settings([segment])
    assert settings.velocity == "differentiated"
    assert any("none was measured" in note for note in notes)
    assert error_percent(prepare(segment, settings)) < 0.01
