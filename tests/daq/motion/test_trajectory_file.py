"""Trajectory files: every format, and every mistake with where it is."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import hypothesis.strategies as st
import numpy as np
import pytest
from acceptance import examples
from hypothesis import HealthCheck, given, settings

from daq.motion import trajectory_file
from daq.motion.errors import TrajectoryFileError
from daq.motion.limits import RowChecker
from daq.motion.playback import ROWS_MAX
from daq.motion.trajectory_file import Trajectory, read_trajectory, write_trajectory
from daq.recording.tables import arrays as table_arrays
from daq.recording.tables.errors import TableError
from daq.robot import load_robot

Arrays = dict[str, Any]
Write = Callable[[Path, Arrays], Path]
NAMES = ("shoulder", "elbow")
DATASETS = {"t": "t_s", "q": "q_rad", "dq": "dq_rad_s", "tau": "tau_nm"}


def motion(*, rate_hz: float = 1000.0, seconds: float = 1.0, times: Any = None) -> Arrays:
    t = np.arange(round(seconds * rate_hz) + 1) / rate_hz if times is None else times
    q = np.column_stack([np.sin(3.0 * t), 0.5 * np.cos(5.0 * t)])
    dq = np.column_stack([3.0 * np.cos(3.0 * t), -2.5 * np.sin(5.0 * t)])
    return {"t": t, "q": q, "dq": dq, "tau": 2.0 * q}


def write_hdf5(folder: Path, arrays: Arrays) -> Path:
    path = folder / "motion.h5"
    with h5py.File(path, "w") as file:
        for key, array in arrays.items():
            file[DATASETS.get(key, key)] = array
    return path


def write_npz(folder: Path, arrays: Arrays) -> Path:
    path = folder / "motion.npz"
    np.savez(path, **arrays)
    return path


def write_csv(folder: Path, arrays: Arrays) -> Path:
    path = folder / "motion.csv"
    header, columns = [], []
    for key, array in arrays.items():
        unit = DATASETS[key].removeprefix(f"{key}_")
        for number, column in enumerate(np.atleast_2d(np.transpose(array)), 1):
            header.append("t_s" if key == "t" else f"{key}{number}_{unit}")
            columns.append(column)
    lines = [",".join(map(repr, map(float, row))) for row in zip(*columns, strict=True)]
    path.write_text("\n".join([",".join(header), *lines]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(params=[write_hdf5, write_npz, write_csv])
def write(request: pytest.FixtureRequest) -> Write:
    """Every format in turn."""
    return request.param  # type: ignore[no-any-return]


def refusal(
    path: Path, *named: str, code: str = "", names: tuple[str, ...] = NAMES
) -> TrajectoryFileError:
    """Read a file that must be refused, with this code, and with these names and numbers."""
    with pytest.raises(TrajectoryFileError) as caught:
        read_trajectory(path, names)
    assert caught.value.path == path and str(path) in str(caught.value)
    assert code in ("", caught.value.code), caught.value
    for name in named:
        assert name in str(caught.value).removeprefix(str(path))
    return caught.value


def table_refusal(path: Path, *named: str) -> None:
    """Read a file that must be refused before its numbers are looked at."""
    assert isinstance(refusal(path, *named).__cause__, TableError)


# --- what is right --------------------------------------------------------------------------------


def test_every_format_gives_the_same_rows(tmp_path: Path, write: Write) -> None:
    arrays = motion()
    trajectory = read_trajectory(write(tmp_path, arrays), NAMES)
    assert np.array_equal(trajectory.rows, np.hstack([arrays["q"], arrays["dq"], arrays["tau"]]))
    assert trajectory.has_torque and not trajectory.is_resampled
    assert trajectory.duration_s == pytest.approx(1.0)


def test_torque_and_speed_may_be_left_out(tmp_path: Path, write: Write) -> None:
    arrays = motion()
    trajectory = read_trajectory(write(tmp_path, {"t": arrays["t"], "q": arrays["q"]}), NAMES)
    assert not trajectory.has_torque
    assert trajectory.rows[:, 2:] == pytest.approx(arrays["dq"], abs=5e-5)


@pytest.mark.parametrize("rate_hz", [100.0, 333.0, 2000.0])
def test_another_rate_is_brought_to_the_loops(tmp_path: Path, write: Write, rate_hz: float) -> None:
    path = write(tmp_path, motion(rate_hz=rate_hz))
    check_resampled(read_trajectory(path, NAMES))


def check_resampled(trajectory: Trajectory, tolerance: float = 1e-6) -> None:
    assert trajectory.is_resampled
    exact = motion(times=np.arange(len(trajectory.rows)) * 1e-3)
    assert trajectory.duration_s == pytest.approx(1.0, abs=0.0011)
    assert trajectory.rows[:, :2] == pytest.approx(exact["q"], abs=tolerance)
    assert trajectory.rows[:, 2:4] == pytest.approx(exact["dq"], abs=500 * tolerance)
    assert trajectory.rows[:, 4:] == pytest.approx(exact["tau"], abs=2e-3)


@given(seed=st.integers(0, 1000))
@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_uneven_times_are_brought_to_the_loops_rate(tmp_path: Path, seed: int) -> None:
    steps = np.random.default_rng(seed).uniform(0.002, 0.01, 1000)
    times = np.concatenate([[0.0], np.cumsum(steps)])
    times = np.concatenate([times[times < 1.0], [1.0]])
    check_resampled(read_trajectory(write_hdf5(tmp_path, motion(times=times)), NAMES))


def test_time_may_begin_anywhere(tmp_path: Path, write: Write) -> None:
    arrays = motion()
    trajectory = read_trajectory(write(tmp_path, arrays | {"t": arrays["t"] + 1000.0}), NAMES)
    assert not trajectory.is_resampled
    assert len(trajectory.rows) == 1001


def test_what_is_resampled_passes_the_limits(tmp_path: Path) -> None:
    t = np.linspace(0, 2, 101)
    q = np.column_stack([np.sin(2 * t + n) for n in range(4)])
    dq = np.column_stack([2 * np.cos(2 * t + n) for n in range(4)])
    robot = load_robot("laas4")
    names = [joint.name for joint in robot.joints]
    path = write_hdf5(tmp_path, {"t": t, "q": q, "dq": dq})
    RowChecker(robot).check(read_trajectory(path, names).rows)


def test_rows_rounded_to_four_decimals_pass(tmp_path: Path) -> None:
    arrays = {key: np.round(array, 4) for key, array in motion().items()}
    assert len(read_trajectory(write_csv(tmp_path, arrays), NAMES).rows) == 1001


def test_joints_may_be_named_in_csv(tmp_path: Path) -> None:
    path = tmp_path / "named.csv"
    path.write_text(
        "# a remark\n\nt, q_elbow_rad ,q_shoulder_rad\n0,1,2\n0.001,1,2\n", encoding="utf-8"
    )
    assert read_trajectory(path, NAMES).rows[0].tolist() == [2, 1, 0, 0]


def test_a_written_file_reads_back(tmp_path: Path) -> None:
    path, arrays = tmp_path / "out.h5", motion()
    for tau in (None, arrays["tau"]):
        write_trajectory(
            path,
            t_s=arrays["t"],
            q_rad=arrays["q"],
            dq_rad_s=arrays["dq"],
            tau_nm=tau,
            joint_names=NAMES,
        )
        trajectory = read_trajectory(path, NAMES)
        parts = [arrays["q"], arrays["dq"]] + ([] if tau is None else [tau])
        assert np.array_equal(trajectory.rows, np.hstack(parts))
    assert list(tmp_path.iterdir()) == [path]
    refusal(path, "shoulder, elbow", "a, b", code="other-joints", names=("a", "b"))


def test_shapes_that_do_not_fit_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(TrajectoryFileError, match=r"dq_rad_s .*\(3, 1\)") as caught:
        write_trajectory(
            tmp_path / "x.h5", t_s=[0, 1, 2], q_rad=np.zeros((3, 2)), dq_rad_s=np.zeros((3, 1))
        )
    assert caught.value.code == "wrong-shape"
    assert not list(tmp_path.iterdir())


# --- what is wrong --------------------------------------------------------------------------------


def changed(key: str, place: tuple[int, ...], value: float) -> Arrays:
    arrays = motion()
    arrays[key] = arrays[key].copy()
    arrays[key][place] = value
    return arrays


@pytest.mark.parametrize(
    ("key", "place", "name"),
    [
        ("t", (5,), "t"),
        ("q", (7, 1), "q"),
        ("dq", (0, 0), "dq"),
        ("tau", (1000, 1), "tau"),
    ],
)
@pytest.mark.parametrize("value", [np.nan, np.inf, -1e300])
def test_a_value_that_is_no_number_is_named(
    tmp_path: Path, write: Write, *, key: str, place: tuple[int, ...], name: str, value: float
) -> None:
    path = write(tmp_path, changed(key, place, value))
    refusal(path, name, f"row {place[0]}: {value}", code="not-finite")


def test_time_must_rise(tmp_path: Path, write: Write) -> None:
    path = write(tmp_path, changed("t", (10,), 0.0089))
    refusal(path, "row 10", "0.0089 s", "0.009 s", code="time-falls")


@pytest.mark.parametrize("rows", [0, 1])
def test_two_rows_are_the_least(tmp_path: Path, write: Write, rows: int) -> None:
    arrays = {key: array[:rows] for key, array in motion().items()}
    refusal(write(tmp_path, arrays), f"{rows} rows", code="few-rows")


def test_two_rows_are_enough(tmp_path: Path, write: Write) -> None:
    arrays = {key: motion()[key][:2] for key in ("t", "q")}
    assert len(read_trajectory(write(tmp_path, arrays), NAMES).rows) == 2


def test_time_in_milliseconds_is_too_long(tmp_path: Path, write: Write) -> None:
    arrays = motion() | {"t": np.arange(1001) * 1000.0}
    refusal(write(tmp_path, arrays), f"limit {ROWS_MAX}", code="too-long")


def test_positions_in_degrees_are_told(tmp_path: Path, write: Write) -> None:
    arrays = motion()
    path = write(tmp_path, arrays | {"q": np.rad2deg(arrays["q"])})
    refusal(path, code="position-in-degrees")


def test_speeds_in_degrees_are_told(tmp_path: Path, write: Write) -> None:
    arrays = motion()
    path = write(tmp_path, arrays | {"dq": np.rad2deg(arrays["dq"])})
    refusal(path, code="speed-in-degrees")


def test_swapped_columns_are_told(tmp_path: Path, write: Write) -> None:
    arrays = motion()
    path = write(tmp_path, arrays | {"dq": arrays["dq"][:, ::-1]})
    refusal(path, code="swapped-columns")


def test_an_opposite_sign_is_told(tmp_path: Path, write: Write) -> None:
    arrays = motion()
    path = write(tmp_path, arrays | {"dq": arrays["dq"] * [1, -1]})
    refusal(path, code="opposite-sign")


@pytest.mark.parametrize("factor", [0.0, 0.5])
def test_speeds_that_do_not_belong_to_the_positions_are_refused(
    tmp_path: Path, write: Write, factor: float
) -> None:
    arrays = motion()
    path = write(tmp_path, arrays | {"dq": factor * arrays["dq"]})
    refusal(path, code="speed-not-slope")


def test_a_jump_is_named(tmp_path: Path, write: Write) -> None:
    arrays = motion()
    arrays["q"][500:, 1] += 0.01
    refusal(write(tmp_path, arrays), "row 500", code="position-jump")


def test_too_many_rows_are_refused(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trajectory_file, "ROWS_MAX", 1000)
    refusal(write(tmp_path, motion()), "1000", code="too-long")


@pytest.mark.parametrize("write", [write_hdf5, write_npz])
def test_other_shapes_are_refused(tmp_path: Path, write: Write) -> None:
    arrays = motion()
    path = write(tmp_path, arrays)
    refusal(path, "(1001, 3)", code="wrong-shape", names=(*NAMES, "third"))
    path = write(tmp_path, arrays | {"tau": np.zeros(1001)})
    refusal(path, "tau", "(1001, 2)", code="wrong-shape")
    refusal(write(tmp_path, arrays | {"t": np.float64(3.0)}), "t")
    path = write(tmp_path, arrays | {"q": np.full((1001, 2), b"x")})
    refusal(path, "q", code="not-numbers")


@pytest.mark.parametrize("write", [write_hdf5, write_npz])
@pytest.mark.parametrize("key", ["t", "q"])
def test_what_is_missing_is_named(tmp_path: Path, write: Write, key: str) -> None:
    arrays = motion()
    del arrays[key]
    refusal(write(tmp_path, arrays), DATASETS[key], code="missing")


def test_two_names_for_one_quantity_are_refused(tmp_path: Path) -> None:
    path = write_npz(tmp_path, motion() | {"q_rad": motion()["q"]})
    refusal(path, "q_rad", code="named-twice")


@pytest.mark.parametrize(
    ("dataset", "unit"),
    [("q_rad", "deg"), ("dq_rad_s", "rpm"), ("t_s", "ms"), ("tau_nm", b"mN.m")],
)
def test_another_unit_is_refused(tmp_path: Path, dataset: str, unit: str | bytes) -> None:
    path = write_hdf5(tmp_path, motion())
    with h5py.File(path, "a") as file:
        file[dataset].attrs["units"] = unit
    refusal(path, dataset, code="unknown-unit")


@pytest.mark.parametrize(
    ("text", "code", "named"),
    [
        ("", "missing", "t_s"),
        ("t_s,q1_rad\n0,1\n", "missing", "q2_rad"),
        ("q1_rad,q2_rad\n0,1\n", "missing", "t_s"),
        ("t_s,q1_rad,q2_rad,dq1_rad_s\n", "missing", "dq2_rad_s"),
        ("t_s,q1_rad,q2_deg\n", "no-such-column", "q2_rad?"),
        ("t_s,q1_rad,q1,q2\n", "named-twice", "q1_rad"),
        ("0.0,1.0,2.0\n", "no-header", "t_s, q1_rad, dq1_rad_s"),
        ("t,q1,q2\n0,1,\n1,2,3\n", "not-finite", "q2 row 0: nan"),
    ],
)
def test_mistakes_in_text_are_named(tmp_path: Path, text: str, code: str, named: str) -> None:
    path = tmp_path / "motion.csv"
    path.write_text(text, encoding="utf-8")
    refusal(path, named, code=code)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("t,q1,q2\n0,1,2\n1,x,2\n", ("q1", "line 3", "'x'")),
        ("t,q1,q2\n0,1,2\n1,2\n", ("line 3", "2 values", "3")),
        ("t,q1,q2\n0,1,2,3\n1,2,3,4\n", ("line 2", "4 values", "3")),
    ],
)
def test_cells_that_cannot_be_read_are_named(
    tmp_path: Path, text: str, named: tuple[str, ...]
) -> None:
    path = tmp_path / "motion.csv"
    path.write_text(text, encoding="utf-8")
    table_refusal(path, *named)


def test_files_that_are_not_there_or_no_files(tmp_path: Path) -> None:
    table_refusal(tmp_path / "none.h5")
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    table_refusal(folder)
    refusal(tmp_path / "a.mat", "'.mat'", ".h5, .hdf5, .npz, .csv", code="unknown-format")


def test_a_file_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    with path.open("wb") as file:
        file.truncate(table_arrays.BYTES_MAX + 1)
    table_refusal(path, f"limit {table_arrays.BYTES_MAX}")


def test_a_file_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_arrays, "BYTES_MAX", 1 << 20)
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("q.npy", bytes((1 << 20) + 1))
    assert path.stat().st_size < 1 << 12
    table_refusal(path, f"{(1 << 20) + 1} bytes", f"limit {1 << 20}")


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    path = tmp_path / "pickle.npz"
    np.savez(path, t=np.array([{}], dtype=object), q=motion()["q"])
    refusal(path, "t", code="not-numbers")


@pytest.mark.parametrize("suffix", [".h5", ".npz", ".csv"])
@given(content=st.binary(max_size=400))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_refused_politely(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"any{suffix}"
    path.write_bytes(content)
    refusal(path)


@pytest.mark.parametrize("write", [write_hdf5, write_npz, write_csv])
@given(cut=st.integers(1, 60_000), flip=st.integers(0, 7))
@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_is_refused_or_still_sound(
    tmp_path: Path, write: Write, cut: int, flip: int
) -> None:
    path = write(tmp_path, motion(seconds=0.2))
    content = bytearray(path.read_bytes())
    content[cut % len(content)] ^= 1 << flip
    path.write_bytes(content)
    try:
        trajectory = read_trajectory(path, NAMES)
    except TrajectoryFileError:
        return
    assert np.isfinite(trajectory.rows).all()


@pytest.mark.parametrize("kind", ["link", "soft", "external", "virtual"])
def test_values_that_are_stored_elsewhere_are_refused(tmp_path: Path, kind: str) -> None:
    path = write_hdf5(tmp_path, motion())
    with h5py.File(path, "r+") as file:
        del file["t_s"]
        if kind == "link":
            file["t_s"] = h5py.ExternalLink("other.h5", "/t_s")
        elif kind == "soft":
            file["t_s"] = h5py.SoftLink("/q_rad")
        elif kind == "external":
            file.create_dataset("t_s", (100,), "f8", external=[("/etc/passwd", 0, 800)])
        else:
            layout = h5py.VirtualLayout((100,), "f8")
            layout[:] = h5py.VirtualSource("other.h5", "t_s", (100,))
            file.create_virtual_dataset("t_s", layout)
    table_refusal(path, "t_s")


def test_a_cell_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "quote.csv"
    path.write_text('"' + "a" * 200_000 + ",")
    table_refusal(path)
