"""Files from elsewhere as measurements of a robot."""

from __future__ import annotations

import gzip
import io
import math
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse
from acceptance import IS_LONG, examples
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from daq.recording.tables import arrays as table_arrays
from daq.recording.tables import text as table_text
from daq.recording.tables.errors import TableError
from daq.robot import Robot, parse_robot, robot_text
from estimation.errors import DatasetError, OptionError
from estimation.importing import matlab
from estimation.importing.files import read_array_file
from estimation.importing.measurements import ImportOptions, Measurements, measure
from estimation.importing.sampling import find_rate, resample

ROWS = 400
Arrays = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def laas4() -> Robot:
    return parse_robot(robot_text("laas4"), "laas4")


@pytest.fixture(scope="module")
def bench1() -> Robot:
    return parse_robot(robot_text("bench1"), "bench1")


def arrays(joints: int = 4, rows: int = ROWS, rate_hz: float = 500.0) -> Arrays:
    t = np.arange(rows) / rate_hz
    phase = t[:, None] * np.arange(1, joints + 1)
    return {
        "t": t,
        "q": np.sin(phase),
        "dq": np.cos(phase) * np.arange(1, joints + 1),
        "tau": phase,
    }


def measured(path: Path | list[Path], robot: Robot, **options: Any) -> Measurements:
    paths = path if isinstance(path, list) else [path]
    how = {"mapping": {}, "units": {}, **options}
    return measure([read_array_file(one) for one in paths], robot, ImportOptions(**how))


def write_csv(path: Path, values: Arrays, *, header: str | None = None, mark: str = ",") -> Path:
    columns = np.column_stack(list(values.values()))
    lines = [mark.join(repr(float(cell)) for cell in row) for row in columns]
    if header is None:
        header = mark.join(
            name if array.ndim == 1 else mark.join(f"{name}{n + 1}" for n in range(array.shape[1]))
            for name, array in values.items()
        )
    path.write_text("\n".join([*([header] if header else []), *lines, ""]))
    return path


def write_mat73(path: Path, values: Arrays) -> Path:
    with h5py.File(path, "w") as file:
        for name, array in values.items():
            # As MATLAB does: the last index first, vectors as columns.
            file[name] = array.reshape(len(array), -1).T
    return path


def write_npz(path: Path, values: Arrays) -> Path:
    np.savez_compressed(path, **values)
    return path


def write_mat5(path: Path, values: Arrays) -> Path:
    scipy.io.savemat(path, values)
    return path


def write_mat_struct(path: Path, values: Arrays) -> Path:
    scipy.io.savemat(path, {"log": {name: array.T for name, array in values.items()}})
    return path


WRITERS: dict[str, tuple[str, Callable[[Path, Arrays], Path]]] = {
    "csv": ("f.csv", write_csv),
    "npz": ("f.npz", write_npz),
    "mat5": ("f.mat", write_mat5),
    "mat7.3": ("f.mat", write_mat73),
    "struct": ("f.mat", write_mat_struct),
}
IN_CHILDREN = {"mat5", "struct"}
"""Formats that another process reads, which takes a second: few examples of them."""
IN_PROCESS = sorted(WRITERS.keys() - IN_CHILDREN)
values = st.floats(-1e6, 1e6) | st.sampled_from([math.nan, math.inf, 0.0, -0.0, 5e-324, 1e300])


@pytest.mark.parametrize("kind", IN_PROCESS)
@settings(max_examples=examples(15))
@given(data=st.data())
def test_round_trip(
    kind: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory, bench1: Robot
) -> None:
    check_round_trip(kind, data, tmp_path_factory, bench1)


@pytest.mark.system
@pytest.mark.parametrize("kind", sorted(IN_CHILDREN))
@settings(max_examples=1)
@given(data=st.data())
def test_round_trip_through_a_child(
    kind: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory, bench1: Robot
) -> None:
    check_round_trip(kind, data, tmp_path_factory, bench1)


def check_round_trip(
    kind: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory, bench1: Robot
) -> None:
    rows = data.draw(st.integers(10, 60))
    rate_hz = data.draw(st.sampled_from([1.0, 100.0, 333.3, 1000.0, 5000.0, 12345.6]))
    # Angles that differ by less than a turn, and are not unwrapped.
    angles = st.floats(-2.5, 2.5) | st.sampled_from([math.nan, math.inf, -0.0, 5e-324, 1e300])
    q, tau = (
        np.array(data.draw(st.lists(some, min_size=rows, max_size=rows)))
        for some in (angles, values)
    )
    q[0] = tau[0] = 1.0
    name, write = WRITERS[kind]
    path = write(
        tmp_path_factory.mktemp("f") / name,
        {"t": 5.0 + np.arange(rows) / rate_hz, "q": q[:, None], "tau": tau[:, None]},
    )
    sensible = [np.where(np.abs(array) <= 1e9, array, math.nan) for array in (q, tau)]
    if np.mean(np.isfinite(sum(sensible))) < 0.5:
        with refused(DatasetError, "few-rows"):
            measured(path, bench1)
        return
    found = measured(path, bench1)
    assert found.sampling.rate_hz == pytest.approx(rate_hz, rel=1e-6)
    np.testing.assert_array_equal(found.sampling.seq, np.arange(rows))
    np.testing.assert_array_equal(found.q_rad[:, 0], sensible[0])
    np.testing.assert_array_equal(found.tau_nm[:, 0], sensible[1])
    np.testing.assert_array_equal(found.valid[:, 0], np.isfinite(sum(sensible)))
    assert found.dq_rad_s is None


DTYPES = ["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]


@pytest.mark.system
def test_every_number_that_matlab_has(tmp_path: Path) -> None:
    numbers = np.arange(60.0).reshape(20, 3)
    contents = {
        **{f"a_{dtype}": numbers.astype(dtype) for dtype in DTYPES},
        "logical": numbers > 30,
        "text": "nothing",
        "cell": np.array([numbers, "x"], dtype=object),
        "complex": numbers[:, 0] * 1j,
        "empty": np.zeros((0, 0)),
        "s": {"inner": {"b": numbers[:, :1]}, "name": "x", "many": [{"c": 1.0}, {"c": 2.0}]},
    }
    path = tmp_path / "f.mat"
    scipy.io.savemat(path, contents, do_compression=True)
    found = read_array_file(path).fields
    assert set(found) == {*(f"a_{dtype}" for dtype in DTYPES), "logical", "s.inner.b"}
    for dtype in DTYPES:
        np.testing.assert_array_equal(found[f"a_{dtype}"], numbers)
    np.testing.assert_array_equal(found["logical"], numbers > 30)
    np.testing.assert_array_equal(found["s.inner.b"], numbers[:, :1])


# --- names and mappings ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    [
        "t,q1,q2,q3,q4,dq1,dq2,dq3,dq4,tau1,tau2,tau3,tau4",
        "time,pos_1,pos_2,pos_3,pos_4,vel_1,vel_2,vel_3,vel_4,torque_1,torque_2,torque_3,torque_4",
        "t_s,q1_rad,q2_rad,q3_rad,q4_rad,dq1_rad_s,dq2_rad_s,dq3_rad_s,dq4_rad_s,"
        "tau1_nm,tau2_nm,tau3_nm,tau4_nm",
        "Time [s],Q(0),Q(1),Q(2),Q(3),qd0,qd1,qd2,qd3,Effort 0,Effort 1,Effort 2,Effort 3",
        "timestamp,actual_q_0,actual_q_1,actual_q_2,actual_q_3,actual_qd_0,actual_qd_1,actual_qd_2,"
        "actual_qd_3,tau_J1,tau_J2,tau_J3,tau_J4",
    ],
)
def test_usual_names_are_understood(tmp_path: Path, laas4: Robot, header: str) -> None:
    given = arrays()
    found = measured(write_csv(tmp_path / "f.csv", given, header=header), laas4)
    np.testing.assert_array_equal(found.q_rad, given["q"])
    np.testing.assert_array_equal(found.dq_rad_s, given["dq"])
    np.testing.assert_array_equal(found.tau_nm, given["tau"])
    assert found.taken["q_rad"].source.startswith("f.csv:")


def test_joints_may_be_called_by_name(tmp_path: Path, laas4: Robot) -> None:
    names = [joint.name for joint in laas4.joints][::-1]
    given = arrays()
    del given["dq"]
    words = ["t", *(f"q_{name}" for name in names), *(f"tau_{name}_nm" for name in names)]
    found = measured(write_csv(tmp_path / "f.csv", given, header=",".join(words)), laas4)
    np.testing.assert_array_equal(found.q_rad, given["q"][:, ::-1])


@pytest.mark.parametrize(
    ("q", "tau"),
    [
        ("a.csv", "b.csv"),
        ("a.csv:1-4", "b.csv:1-4"),
        ("a:Joint*", "b:Joint_1,b:Joint_2,b:3,b.csv:Joint_4"),
    ],
)
def test_two_files_side_by_side(tmp_path: Path, laas4: Robot, q: str, tau: str) -> None:
    given = arrays()
    header = ",".join(f"Joint_{n}" for n in range(1, 5))
    paths = [
        write_csv(tmp_path / "a.csv", {"q": given["q"]}, header=header),
        write_csv(tmp_path / "b.csv", {"tau": given["tau"]}, header=header),
    ]
    found = measured(paths, laas4, mapping={"q_rad": q, "tau_nm": tau}, rate_hz=500.0)
    np.testing.assert_array_equal(found.q_rad, given["q"])
    np.testing.assert_array_equal(found.tau_nm, given["tau"])
    assert found.taken["q_rad"].source == "a.csv:Joint_1 … Joint_4"


def test_columns_by_number_of_files_without_names(tmp_path: Path, laas4: Robot) -> None:
    given = arrays()
    mapping = {"t_s": "1", "q_rad": "2-5", "dq_rad_s": "6-9", "tau_nm": "10-13"}
    for mark, name in ((",", "a.csv"), (";", "b.csv"), ("\t", "c.tsv"), (" ", "d.txt")):
        path = write_csv(tmp_path / name, given, header="", mark=mark)
        found = measured(path, laas4, mapping=mapping)
        np.testing.assert_array_equal(found.tau_nm, given["tau"])
    stacked = np.column_stack(list(given.values()))
    np.savez(tmp_path / "e.npz", log=stacked)
    by_array = {key: f"log:{columns}" for key, columns in mapping.items()}
    found = measured(tmp_path / "e.npz", laas4, mapping=by_array)
    np.testing.assert_array_equal(found.q_rad, given["q"])


def test_text_as_people_have_it(tmp_path: Path, bench1: Robot) -> None:
    lines = [f"{n / 100:.2f};{n * 0.5:.1f};1,5".replace(".", ",") for n in range(20)]
    lines[7] = "0,07;;1,5"
    lines.insert(3, "")
    text = "\ufeff% a comment\n% t_s;q1_deg;tau1\n" + "\r\n".join(lines)
    (tmp_path / "f.csv").write_text(text, encoding="utf-8")
    found = measured(tmp_path / "f.csv", bench1)
    assert found.taken["q_rad"].unit == "deg"
    assert found.q_rad[6, 0] == pytest.approx(math.radians(3.0))
    assert (found.tau_nm == 1.5).all()
    assert list(np.flatnonzero(~found.valid)) == [7]
    assert any("1 of 20 rows" in note for note in found.notes)


def test_text_columns_and_a_line_of_units(tmp_path: Path, bench1: Robot) -> None:
    lines = [f"{n},run {n},{0.001 * n},{n},{1.7e9 + n / 100:.2f}" for n in range(50)]
    text = "\n".join([",mode,q1,tau1,stamp", ",,deg,mNm,s", *lines])
    (tmp_path / "f.csv").write_text(text)
    found = measured(tmp_path / "f.csv", bench1, mapping={"t_s": "stamp*"})
    assert (found.taken["q_rad"].unit, found.taken["tau_nm"].unit) == ("deg", "mNm")
    assert found.tau_nm[10, 0] == pytest.approx(0.01)
    assert found.valid.all()
    # Times may count from 1970.
    assert found.sampling.rate_hz == pytest.approx(100.0, rel=1e-6)


@pytest.mark.parametrize(
    ("units", "factors"),
    [
        ({"q_rad": "deg", "dq_rad_s": "deg/s"}, (math.pi / 180, math.pi / 180, 1.0)),
        ({"tau_nm": "mNm"}, (1.0, 1.0, 1e-3)),
        ({"q_rad": "0.5", "dq_rad_s": "0.5", "tau_nm": "-2"}, (0.5, 0.5, -2.0)),
    ],
)
def test_units(tmp_path: Path, laas4: Robot, units: dict[str, str], factors: Any) -> None:
    given = arrays()
    found = measured(write_npz(tmp_path / "f.npz", given), laas4, units=units)
    for key, array, factor in zip(
        ("q", "dq", "tau"), (found.q_rad, found.dq_rad_s, found.tau_nm), factors, strict=True
    ):
        np.testing.assert_allclose(array, given[key] * factor)


@pytest.mark.parametrize(
    ("change", "option"),
    [
        ({"q": 180.0 / math.pi}, "--unit q_rad=deg"),
        ({"dq": 180.0 / math.pi}, "--unit dq_rad_s=deg/s"),
        ({"dq": 30.0 / math.pi}, "--unit dq_rad_s=rpm"),
        ({"dq": -1.0}, "-1 times"),
    ],
)
def test_units_that_cannot_be_are_said(
    tmp_path: Path, laas4: Robot, change: dict[str, float], option: str
) -> None:
    given = arrays()
    for key, factor in change.items():
        given[key] = given[key] * factor
    with refused(DatasetError, "velocity-unit", option):
        measured(write_npz(tmp_path / "f.npz", given), laas4)


def test_what_is_odd_is_said(tmp_path: Path, laas4: Robot) -> None:
    given = arrays()
    del given["dq"]
    given["q"] = given["q"] * 180.0 / math.pi
    given["tau"][:, 1] = 1000.0
    notes = measured(write_npz(tmp_path / "f.npz", given), laas4).notes
    assert any("--unit q_rad=deg" in note for note in notes)
    assert any(
        "joint2" in note and "1e+03 N·m" in note and "--unit tau_nm" in note for note in notes
    )
    assert (
        len([note for note in notes if "1e+03 N·m" in note]) == 2
    )  # too high, and always the same
    given["q"] = np.where(given["t"] < 0.4, 0.0, 2.0)[:, None] * np.ones(4)
    notes = measured(write_npz(tmp_path / "g.npz", given), laas4).notes
    assert any("2 rad at row 199" in note for note in notes)


def test_holes_are_no_jumps(tmp_path: Path, laas4: Robot) -> None:
    whole = arrays(rows=2000)
    kept = np.r_[0:500, 560:1000, 1400:2000]
    given = {name: array[kept] for name, array in whole.items()}
    given["dq"][100, 2] = math.nan
    notes = measured(write_npz(tmp_path / "f.npz", given), laas4).notes
    assert not any("joint" in note for note in notes)
    # Nor does one missing number keep units from being checked.
    given["dq"] = given["dq"] * 180.0 / math.pi
    with refused(DatasetError, "velocity-unit", "--unit dq_rad_s=deg/s"):
        measured(write_npz(tmp_path / "g.npz", given), laas4)


def test_single_outliers_are_called_so(tmp_path: Path, laas4: Robot) -> None:
    given = arrays(rows=2000)
    del given["dq"]
    given["q"][[700, 900]] = 0.0
    given["tau"][300, 1] = 50.0
    notes = measured(write_npz(tmp_path / "f.npz", given), laas4).notes
    positions = [note for note in notes if "row 700" in note]
    assert len(positions) == 4
    assert all(value in positions[0] for value in ("joint1", " 2 ", "0 rad", "0.985", "0.986"))
    assert any("joint2" in note and "row 300" in note and "50 N·m" in note for note in notes)
    assert len([note for note in notes if "joint" in note]) == 5  # and no jumps


# --- names in messages ----------------------------------------------------------------------------


NAMES = [f"{what}_J{n}" for what in ("cmd_pos", "act_pos", "act_trq") for n in range(1, 5)]


@pytest.mark.parametrize(
    ("names", "texts"),
    [
        (
            ["Zeit", *NAMES],
            [
                "f.csv has Zeit, cmd_pos_J1…J4, act_pos_J1…J4, act_trq_J1…J4",
                "--map 'q_rad=act_pos_J*' --map 'tau_nm=act_trq_J*'",
            ],
        ),
        (["logger_time", *NAMES, "act_pos_Jx"], ["act_pos_Jx", "--map 't_s=logger_time'"]),
        (
            [f"J{n}_{what}" for n in range(1, 5) for what in ("angle", "moment")],
            ["--map 'q_rad=J*_angle' --map 'tau_nm=J*_moment'"],
        ),
        ([f"x{n}" for n in range(1, 5)], ["f.csv has x1…x4;", "--map 'q_rad=x*'"]),
        ([f"a{n}b" for n in range(3)] + ["c"], ["f.csv has a0b…a2b, c;", "--map 'q_rad=NAME*'"]),
        ([f"{a}{b}" for a in "abcdefg" for b in "hijklmn"], ["(9 more)"]),
    ],
)
def test_what_is_missing_is_suggested(
    tmp_path: Path, laas4: Robot, names: list[str], texts: list[str]
) -> None:
    values = {name: np.arange(1.0, 31.0) for name in names}
    with refused(DatasetError, "no-such-quantity") as raised:
        measured(write_csv(tmp_path / "f.csv", values), laas4)
    for text in texts:
        assert text in str(raised.value)


def test_a_suggestion_works(tmp_path: Path, laas4: Robot) -> None:
    given = arrays()
    path = write_csv(
        tmp_path / "f.csv", {"time": given["t"], "act_pos_J": given["q"], "act_trq_J": given["tau"]}
    )
    with refused(DatasetError, "no-such-quantity") as raised:
        measured(path, laas4)
    mapping = dict(word.split("=") for word in str(raised.value).split("'") if word.count("=") == 1)
    assert mapping == {"q_rad": "act_pos_J*", "tau_nm": "act_trq_J*"}
    np.testing.assert_array_equal(measured(path, laas4, mapping=mapping).q_rad, given["q"])


def test_the_first_column_of_a_file_without_names_may_be_time(tmp_path: Path, laas4: Robot) -> None:
    given = arrays()
    path = write_csv(tmp_path / "f.csv", given, header="")
    with refused(DatasetError, "no-such-quantity", "--map 'q_rad=f.csv:2-5'"):
        measured(path, laas4)
    path = write_csv(tmp_path / "g.csv", {"q": given["q"]}, header="")
    with refused(DatasetError, "no-such-quantity", "--map 'q_rad=g.csv:1-4'"):
        measured(path, laas4)
    with refused(DatasetError, "no-such-quantity", "h.npz", "x (400 × 4)", "--map 'q_rad=x'"):
        measured(write_npz(tmp_path / "h.npz", {"x": given["q"]}), laas4)


# --- sides and currents ---------------------------------------------------------------------------

COUPLED = """
schema = 1
name = "wrist"
description = "two joints, the second motor turns with the first joint"
coupling = [[1.0, 0.0], [0.5, 1.0]]

[[joints]]
name = "a"
transmission = { gear_reduction = 45.0, direction = -1, joint_offset_rad = 0.3 }
limits = { position_min_rad = -9, position_max_rad = 9, velocity_max_rad_s = 9, torque_max_nm = 9 }
dh = { a_m = 0, d_m = 0, alpha_rad = 0 }

[[joints]]
name = "b"
transmission = { gear_reduction = 32.0, torque_constant_nm_per_a = 0.1 }
limits = { position_min_rad = -9, position_max_rad = 9, velocity_max_rad_s = 9, torque_max_nm = 9 }
dh = { a_m = 0, d_m = 0, alpha_rad = 0 }
"""


def test_motor_side_by_gears_and_coupling(tmp_path: Path) -> None:
    robot = parse_robot(COUPLED, "wrist")
    given = arrays(2)
    p1 = -45.0 * (given["q"][:, 0] - 0.3)
    p2 = 32.0 * (0.5 * (given["q"][:, 0] - 0.3) + given["q"][:, 1])
    v1 = -45.0 * given["dq"][:, 0]
    v2 = 32.0 * (0.5 * given["dq"][:, 0] + given["dq"][:, 1])
    motor = {"t": given["t"], "q": np.c_[p1, p2], "dq": np.c_[v1, v2], "tau": given["tau"]}
    found = measured(write_npz(tmp_path / "f.npz", motor), robot, side="motor")
    np.testing.assert_allclose(found.q_rad, given["q"], atol=1e-12)
    np.testing.assert_allclose(found.dq_rad_s, given["dq"], atol=1e-12)
    # The same power on either side.
    power = (motor["dq"] * motor["tau"]).sum(axis=1)
    np.testing.assert_allclose((found.dq_rad_s * found.tau_nm).sum(axis=1), power, atol=1e-9)


def test_torque_from_current_needs_a_torque_constant(tmp_path: Path, laas4: Robot) -> None:
    given = arrays()
    given["iq"] = given.pop("tau")
    found = measured(write_npz(tmp_path / "f.npz", given), laas4)
    for number, joint in enumerate(laas4.joints):
        drive = joint.drive
        factor = laas4.motor_of(joint).torque_constant_nm_per_a * drive.direction
        factor *= drive.gear_reduction * drive.gear_efficiency
        np.testing.assert_allclose(found.tau_nm[:, number], given["iq"][:, number] * factor)
    np.testing.assert_array_equal(found.iq_a, given["iq"])
    two = {name: array[..., :2] if array.ndim > 1 else array for name, array in given.items()}
    with refused(DatasetError, "no-torque-constant", "joint a", "torque_constant_nm_per_a"):
        measured(write_npz(tmp_path / "g.npz", two), parse_robot(COUPLED, "wrist"))


# --- time -----------------------------------------------------------------------------------------


@settings(max_examples=examples(50))
@given(st.data())
def test_missing_rows_become_missing_numbers(data: st.DataObject) -> None:
    kept = sorted(data.draw(st.sets(st.integers(0, 300), min_size=200)))
    rate_hz = data.draw(st.floats(10.0, 1e4))
    jitter = np.array(data.draw(st.lists(st.floats(-0.004, 0.004), min_size=301, max_size=301)))
    t_s = 3.0 + (np.array(kept) + jitter[: len(kept)]) / rate_hz
    sampling = find_rate(t_s)
    np.testing.assert_array_equal(sampling.seq, np.array(kept) - kept[0])
    assert sampling.rate_hz == pytest.approx(rate_hz, rel=1e-3)


@pytest.mark.parametrize("jitter", [0.0, 0.1, 0.25])
@pytest.mark.parametrize("missing", [0.0, 0.02, 0.2])
@pytest.mark.parametrize("seed", range(3))
def test_rows_are_put_in_their_places_where_stamps_jitter(
    jitter: float, missing: float, seed: int
) -> None:
    random = np.random.default_rng(seed)
    seq = np.flatnonzero(random.random(5000) >= missing)
    seq[3000:] += 1234  # a long gap: its length needs a period that few rows do not tell
    t_s = 7.0 + (seq + random.uniform(-jitter, jitter, len(seq))) / 250.0
    sampling = find_rate(t_s)
    np.testing.assert_array_equal(sampling.seq, seq - seq[0])
    assert sampling.rate_hz == pytest.approx(250.0, rel=1e-5)
    assert sampling.jitter == pytest.approx(jitter, abs=0.02)


def test_stamps_that_come_in_pairs_are_not_at_half_the_rate() -> None:
    seq = np.arange(3000)
    sampling = find_rate((seq + np.where(seq % 2, 0.2, -0.2)) / 1000.0)
    np.testing.assert_array_equal(sampling.seq, seq)
    assert sampling.jitter == pytest.approx(0.2, abs=1e-3)


def test_few_rows_with_a_long_hole() -> None:
    seq = np.r_[0:6, 4000:4005]
    np.testing.assert_array_equal(find_rate(seq / 100.0).seq, seq)


def test_times_that_were_printed_with_too_few_digits() -> None:
    sampling = find_rate(np.round(np.arange(4000) / 400.0, 3))
    np.testing.assert_array_equal(sampling.seq, np.arange(4000))
    assert sampling.rate_hz == pytest.approx(400.0, rel=1e-5)


@pytest.mark.parametrize("kind", ["uniform", "exponential", "walk", "two rates", "far"])
def test_irregular_sampling_is_refused(kind: str) -> None:
    random = np.random.default_rng(0)
    times = {
        "uniform": np.cumsum(random.uniform(0.5, 1.5, 2000)),
        "exponential": np.cumsum(random.exponential(1.0, 2000)),
        "walk": np.cumsum(random.uniform(0.9, 1.1, 2000)),
        "two rates": np.concatenate([np.arange(500.0), 500.0 + 1.3 * np.arange(500.0)]),
        "far": np.arange(2000) + random.uniform(-0.45, 0.45, 2000),
    }
    with refused(DatasetError, "uneven-times", "--resample"):
        find_rate(1e-3 * times[kind])


def test_jitter_is_said_and_rows_without_a_time_are_left_out(tmp_path: Path, laas4: Robot) -> None:
    given = arrays()
    given["t"] += np.resize([0.4e-3, -0.4e-3, 0.0, -0.4e-3, 0.4e-3], ROWS)
    given["t"][[0, 50, 51]] = math.nan
    found = measured(write_npz(tmp_path / "f.npz", given), laas4)
    np.testing.assert_array_equal(found.sampling.seq, np.delete(np.arange(ROWS), [0, 50, 51]) - 1)
    np.testing.assert_array_equal(found.q_rad, np.delete(given["q"], [0, 50, 51], axis=0))
    assert any(": 3," in note for note in found.notes)
    assert any("0.2 periods (0.4 ms)" in note for note in found.notes)
    found = measured(write_npz(tmp_path / "g.npz", given), laas4, is_resampled=True)
    assert any(": 3," in note for note in found.notes)
    assert measured_evenly(tmp_path, laas4).notes == ()


def measured_evenly(folder: Path, robot: Robot) -> Measurements:
    return measured(write_npz(folder / "even.npz", arrays()), robot)


def test_uneven_times_are_refused_or_interpolated(tmp_path: Path, bench1: Robot) -> None:
    random = np.random.default_rng(0)
    t = np.cumsum(random.uniform(0.9e-3, 1.1e-3, 1000))
    t[500:] += 0.1
    given = {"t": t, "q": 2.0 * t, "tau": -t}
    given["q"][800] = math.nan
    path = write_csv(tmp_path / "f.csv", given, header="t,q1,tau1")
    with refused(DatasetError, "uneven-times", "--resample"):
        measured(path, bench1)
    found = measured(path, bench1, is_resampled=True, rate_hz=1000.0)
    seq = found.sampling.seq
    # Nothing is invented in the gap, nor around what is no number.
    assert np.diff(seq).max() == pytest.approx(100, abs=2)
    times = t[0] + seq / 1000.0
    np.testing.assert_allclose(found.tau_nm[:, 0], -times, atol=1e-12)
    assert 1 <= np.count_nonzero(~found.valid) <= 3
    assert any("1000 rows" in note for note in found.notes)


def test_interpolation_meets_samples_exactly() -> None:
    t_s = np.array([0.0, 0.1, 0.2, 0.3, 0.4])
    _, found = resample(t_s, {"a": np.array([[1.0], [2.0], [np.nan], [4.0], [5.0]])}, 10.0)
    np.testing.assert_array_equal(found["a"][:, 0], [1.0, 2.0, math.nan, 4.0, 5.0])


# --- what is refused ------------------------------------------------------------------------------


def spoiled(**changes: Any) -> Arrays:
    return {**arrays(), **changes}


@pytest.mark.parametrize(
    ("given", "options", "code", "values"),
    [
        (spoiled(t=np.zeros(ROWS)), {}, "coarse-times", ("400 rows",)),
        (spoiled(t=np.full(ROWS, np.nan)), {}, "few-times", ("0 of 400",)),
        (spoiled(t=np.arange(ROWS) * 20.0), {}, "bad-rate", ("--unit t_s=ms",)),
        (spoiled(q=np.zeros((ROWS, 3))), {}, "number-of-columns", ("f.npz:q", "3", "4")),
        (spoiled(q=np.zeros((ROWS - 1, 4))), {}, "different-rows", ("399", "400")),
        (spoiled(tau=np.full((ROWS, 4), np.nan)), {}, "few-rows", ("tau_nm",)),
        (
            spoiled(q=arrays()["q"] * 1e12, dq=arrays()["dq"] * 1e12),
            {},
            "few-rows",
            ("q_rad (f.npz:q)", "1e+12", "1e+09"),
        ),
        (
            spoiled(tau=np.where(arrays()["tau"] < 0.1, 1.0, 1e10)),
            {},
            "few-rows",
            ("of 400 rows", "tau_nm (f.npz:tau)", "1e+10"),
        ),
        (
            spoiled(),
            {"units": {"q_rad": "1e308"}},
            "unknown-unit",
            ("--unit q_rad=1e", "1e-12", "1e+12"),
        ),
        (
            spoiled(),
            {"units": {"q_rad": "1e-320"}},
            "unknown-unit",
            ("--unit q_rad=1e", "1e-12", "1e+12"),
        ),
        (spoiled(pos=np.zeros((ROWS, 4))), {}, "ambiguous-columns", ("--map q_rad=",)),
        (spoiled(), {"rate_hz": 400.0}, "other-rate", ("--rate 400", "500")),
        (spoiled(), {"rows": (395, None)}, "few-rows", ("5 rows", "10", "--rows")),
        (spoiled(), {"mapping": {"q_rad": "p"}}, "no-such-column", ("f.npz", "--map q_rad=p")),
        (spoiled(), {"mapping": {"q_rad": "q:1-5"}}, "no-such-column", ("--map q_rad=q:1-5",)),
        (spoiled(), {"mapping": {"q_rad": ""}}, "no-such-column", ("--map q_rad=",)),
        (spoiled(), {"mapping": {"speed": "q"}}, "unknown-quantity", ("--map speed=", "q_rad")),
        (spoiled(), {"units": {"q_rad": "furlong"}}, "unknown-unit", ("furlong", "rad, deg")),
        (spoiled(), {"units": {"q_rad": "0"}}, "unknown-unit", ("--unit q_rad=0", "rad, deg")),
        ({"q": arrays()["q"], "tau": arrays()["tau"]}, {}, "no-times", ("t_s", "--rate 1000")),
        ({"t": arrays()["t"], "x": arrays()["q"]}, {}, "no-such-quantity", ("q_rad", "tau_nm")),
        (
            {"q": arrays()["q"], "tau": arrays()["tau"]},
            {"rate_hz": 1e9},
            "bad-rate",
            ("1e+09", "1e+06"),
        ),
    ],
)
def test_data_that_cannot_be_used_are_refused(
    tmp_path: Path,
    laas4: Robot,
    *,
    given: Arrays,
    options: dict[str, Any],
    code: str,
    values: tuple[str, ...],
) -> None:
    with refused(DatasetError, code, *values) as raised:
        measured(write_npz(tmp_path / "f.npz", given), laas4, **options)
    assert "\n" not in str(raised.value)


def big_npz(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("q.npy", b"\0")
        archive.filelist[0].file_size = 600 << 20  # as its directory says


def short_npz(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("q.npy", npy_header((4,)) + bytes(20))


def boastful_npz(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("q.npy", npy_header((1 << 40, 2)) + bytes(32))


def twofold_npz(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("q.npy", npy_header((4,)) + bytes(32))
        archive.writestr("q", npy_header((4,)) + bytes(32))


def npy_header(shape: tuple[int, ...]) -> bytes:
    file = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue()


def pickled() -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([{"a": 1}], dtype=object))
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "code", "values"),
    [
        ("f.csv", b"", "no-numbers", ()),
        ("f.csv.gz", b"t,q1\n0,1\n", "damaged", (".gz",)),
        ("f.csv.gz", gzip.compress(b"t,q1\n0,1\n" * 99, mtime=0)[:-20], "damaged", (".gz",)),
        ("f.npz.gz", b"", "unknown-suffix", (".npz.gz", ".csv")),
        ("f.npy", npy_header((1 << 40, 6)), "damaged", (".npy",)),
        ("f.npy", pickled(), "damaged", (".npy",)),
        ("f.npy", npy_header((2, 2, 2)) + bytes(64), "not-numbers", ()),
        ("f.csv", b"t,q1\n", "no-numbers", ()),
        ("f.csv", b"t,q1\n0,1\n1,x\n", "not-a-number", ("q1", "line 3", "'x'")),
        ("f.csv", b"t,q1\n0,1\n1,2,3\n", "uneven-rows", ("line 3", "3", "2", "--delimiter")),
        ("f.csv", b"t,t\n0,1\n", "same-name", ("'t'",)),
        ("f.csv", b"\xff\xfe\x00\x01" * 100, "no-numbers", ()),
        ("f.npz", b"PK\x03\x04 nothing", "damaged", (".npz",)),
        ("f.mat", b"MATLAB 5.0 nothing", "not-matlab", ()),
        pytest.param(
            "f.mat",
            b"MATLAB".ljust(126) + b"IM" + b"\x0e\0\0\0\xff\0\0\0",
            "damaged",
            (".mat",),
            marks=pytest.mark.system,
        ),
        ("f.mat", b"\x89HDF\r\n\x1a\n" + bytes(100), "damaged", (".mat",)),
        ("f.h5", b"nothing", "damaged", (".h5",)),
        ("f.xlsx", b"PK", "unknown-suffix", (".xlsx", ".csv")),
        ("f.npz", big_npz, "too-large", ("629145600",)),
        ("f.npz", short_npz, "damaged", ("q", "32", "20")),
        ("f.npz", boastful_npz, "damaged", ("q", "1099511627776")),
        ("f.npz", twofold_npz, "same-name", (" q",)),
        ("f.csv", "t,q1\n0,1\n".encode("utf-16-le"), "zero-bytes", ("UTF-16", "UTF-8")),
        ("f.npy", npy_header((2, 2, 2)) + bytes(64), "not-numbers", (" 3 ",)),
    ],
)
def test_files_that_cannot_be_read_are_refused(
    tmp_path: Path, name: str, content: Any, code: str, values: tuple[str, ...]
) -> None:
    path = tmp_path / name
    content(path) if callable(content) else path.write_bytes(content)
    with refused(DatasetError, code, path, *values):
        read_array_file(path)


def test_pickles_are_never_opened_and_links_not_followed(tmp_path: Path) -> None:
    np.savez(tmp_path / "f.npz", evil=np.array([{"a": 1}], dtype=object))
    with refused(DatasetError, "no-arrays", "f.npz"):
        read_array_file(tmp_path / "f.npz")
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["q"] = h5py.ExternalLink("/etc/other.h5", "q")
    with refused(DatasetError, "stored-elsewhere", "f.h5", "q"):
        read_array_file(tmp_path / "f.h5")
    with refused(DatasetError, "no-such-file", "none.csv"):
        read_array_file(tmp_path / "none.csv")


@settings(max_examples=examples(60))
@given(st.sampled_from(IN_PROCESS), st.data())
def test_damaged_files_end_in_words(
    tmp_path_factory: pytest.TempPathFactory, kind: str, data: st.DataObject
) -> None:
    name, write = WRITERS[kind]
    path = write(tmp_path_factory.mktemp("f") / name, arrays(rows=20))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 5))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    try:
        file = read_array_file(path)
    except DatasetError:
        return
    assert all(array.ndim == 2 for array in file.fields.values())


@pytest.mark.parametrize(
    ("options", "code", "values"),
    [
        ({"mapping": {"q_rad": "q1,q1,q3,q4"}}, "mapped-twice", ("log.csv:q1", "q_rad", "--map")),
        ({"mapping": {"tau_nm": "q*"}}, "mapped-twice", ("log.csv:q1", "q_rad", "tau_nm")),
        ({"units": {"iq_a": "mA"}}, "no-such-quantity", ("--unit iq_a=mA",)),
        ({"units": {"q_rad": "1e12"}}, "few-rows", ("q_rad (log.csv:q1 … q4)", "1e+12")),
    ],
)
def test_columns_and_units_that_cannot_be_meant(
    tmp_path: Path, laas4: Robot, options: dict[str, Any], code: str, values: tuple[str, ...]
) -> None:
    path = write_csv(tmp_path / "log.csv", {**arrays(), "q": np.ones((ROWS, 4))})
    with refused(DatasetError, code, *values):
        measured(path, laas4, **options)


def test_times_that_fall_are_those_of_a_file(tmp_path: Path, laas4: Robot) -> None:
    path = write_csv(tmp_path / "log.csv", {**arrays(), "t": -np.arange(ROWS)})
    with refused(DatasetError, "times-do-not-rise", "log.csv:t", "row 1 ", "-1 s"):
        measured(path, laas4)


def one_joint(more: str = "") -> Robot:
    joint = "[[joints]]\nname = 'a'\ndh = { a_m = 0, d_m = 0, alpha_rad = 0 }\n[joints.limits]\n"
    joint += "position_min_rad = -5\nposition_max_rad = 5\n"
    joint += "velocity_max_rad_s = 20\ntorque_max_nm = 200\n"
    return parse_robot(f"schema = 1\nname = 'one'\ndescription = ''\n{joint}{more}", "one")


def test_a_motor_side_without_gears_is_refused(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "log.csv", arrays(joints=1))
    with refused(DatasetError, "no-gear", "robot one", "[joints.transmission]", "gear_reduction"):
        measured(path, one_joint(), side="motor")
    assert measured(path, one_joint()).notes == ()
    stated = one_joint("[joints.transmission]\ngear_reduction = 1.0\n")
    assert measured(path, stated, side="motor").notes == ()


@pytest.mark.parametrize("name", ["f.csv.gz", "f.TXT.GZ"])
def test_compressed_text(tmp_path: Path, laas4: Robot, name: str) -> None:
    text = write_csv(tmp_path / "f.csv", arrays()).read_bytes()
    (tmp_path / name).write_bytes(gzip.compress(text))
    np.testing.assert_array_equal(measured(tmp_path / name, laas4).q_rad, arrays()["q"])


def test_compressed_text_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_text, "BYTES_MAX", 3 << 20)
    (tmp_path / "f.csv.gz").write_bytes(gzip.compress(b"0,1\n" * (1 << 20)))
    with refused(DatasetError, "too-large", "f.csv.gz", "3145728"):
        read_array_file(tmp_path / "f.csv.gz")


def test_a_plain_array_is_a_table_without_names(tmp_path: Path, laas4: Robot) -> None:
    given = arrays()
    np.save(tmp_path / "f.npy", np.column_stack(list(given.values())).T)
    with refused(DatasetError, "no-such-quantity", "f.npy", "1-13"):
        measured(tmp_path / "f.npy", laas4)
    mapping = {"t_s": "1", "q_rad": "2-5", "tau_nm": "10-13"}
    found = measured(tmp_path / "f.npy", laas4, mapping=mapping)
    np.testing.assert_array_equal(found.tau_nm, given["tau"])


# --- what is left out, and how it is called -------------------------------------------------------


@pytest.mark.parametrize(
    ("q", "reason"),
    [
        (np.array([1, "a", None], object), "text or objects"),
        (np.ones((ROWS, 1)) * 1j, "complex numbers"),
        (np.ones((ROWS, 2, 2)), "3 dimensions"),
        (np.array(["a", "b"]), "text"),
    ],
)
def test_what_is_left_out_is_named_where_it_is_missed(
    tmp_path: Path, bench1: Robot, q: np.ndarray, reason: str
) -> None:
    path = write_npz(tmp_path / "f.npz", {**arrays(joints=1), "q": q})
    with refused(DatasetError, "no-such-quantity", f"q ({reason})", "--map 'q_rad=NAME'"):
        measured(path, bench1)
    with refused(DatasetError, "no-such-column", f"q ({reason}"):
        measured(path, bench1, mapping={"q_rad": "q"})


def mat_elements(tmp_path: Path, **values: Any) -> bytes:
    scipy.io.savemat(tmp_path / "parts.mat", values)
    return (tmp_path / "parts.mat").read_bytes()[128:]


@pytest.mark.system
def test_what_is_left_out_of_matlab_files(tmp_path: Path) -> None:
    others: dict[str, Any] = {
        "a cell array": np.array([np.ones(3), np.ones(4)], object),
        "complex numbers": np.ones(ROWS) * 1j,
        "a sparse matrix": scipy.sparse.csc_matrix(np.ones((ROWS, 1))),
        "text": "text",
    }
    named = {reason.rpartition(" ")[2]: value for reason, value in others.items()}
    scipy.io.savemat(tmp_path / "f.mat", {"t": np.arange(ROWS), **named})
    # An object, which has no shape.
    names = b"".join(
        struct.pack("<II8s", 1, len(each), each) for each in (b"when", b"MCOS", b"datetime")
    )
    inner = mat_elements(tmp_path, x=np.arange(6, dtype=np.uint32))
    body = struct.pack("<IIII", 6, 8, 17, 0) + names + inner
    more = struct.pack("<II", 14, len(body)) + body
    (tmp_path / "f.mat").write_bytes((tmp_path / "f.mat").read_bytes() + more)
    found = read_array_file(tmp_path / "f.mat")
    assert set(found.fields) == {"t"}
    assert found.left_out == dict(zip(named, others, strict=True)) | {"when": "an object"}


@pytest.mark.system
@pytest.mark.parametrize("seed", range(8 if IS_LONG else 3))
def test_damaged_matlab_files_end_in_words(tmp_path: Path, seed: int) -> None:
    """SciPy may crash on them, in a process of its own."""
    rng = np.random.default_rng(seed)
    path = (write_mat5 if seed % 2 else write_mat_struct)(tmp_path / "f.mat", arrays(rows=20))
    content = bytearray(path.read_bytes())
    for place in rng.integers(128, len(content), size=5):
        content[place] = rng.integers(256)
    path.write_bytes(content[: rng.integers(200, len(content))])
    with pytest.raises(DatasetError):
        read_array_file(path)


@pytest.mark.system
@pytest.mark.parametrize(
    ("script", "code", "value"),
    [
        ("import os; os.kill(os.getpid(), 11)", "damaged", "SIGSEGV"),
        ("import time; time.sleep(60)", "timeout", "0 s"),
        ("import sys; sys.exit('unpacks to too much')", "damaged", "unpacks to too much"),
    ],
)
def test_whatever_happens_to_the_child_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, code: str, value: str
) -> None:
    path = write_mat5(tmp_path / "f.mat", arrays())
    monkeypatch.setattr(matlab, "_COMMAND", (sys.executable, "-c", script))
    monkeypatch.setattr(matlab, "_TIME_MAX_S", 0.5 if "sleep" in script else 60.0)
    with refused(TableError, code, path, value):
        matlab.read_mat(path)


@pytest.mark.system
def test_a_matlab_file_of_little_that_becomes_much(tmp_path: Path) -> None:
    packed = zlib.compress(struct.pack("<II", 14, 3 << 30) + bytes(3 << 20))
    header = b"MATLAB 5.0".ljust(124) + b"\x00\x01IM"
    (tmp_path / "f.mat").write_bytes(header + struct.pack("<II", 15, len(packed)) + packed)
    with pytest.raises(DatasetError):
        read_array_file(tmp_path / "f.mat")


@pytest.mark.parametrize("name", ["f.csv", "f.npz", "f.h5"])
@pytest.mark.parametrize("error", [TypeError, AttributeError, AssertionError, IndexError])
def test_a_bug_of_ours_is_not_called_a_damaged_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, error: type[Exception]
) -> None:
    path = {"f.csv": write_csv, "f.npz": write_npz, "f.h5": write_mat73}[name](
        tmp_path / name, arrays()
    )

    def broken(*_: object) -> None:
        raise error("planted")

    monkeypatch.setattr(table_arrays.Arrays, "add", broken)
    monkeypatch.setattr(table_text, "_delimiter", broken)
    with pytest.raises(error, match="planted"):
        read_array_file(path)


def test_names_cannot_move_the_cursor(tmp_path: Path, bench1: Robot) -> None:
    given = arrays(joints=1)
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["t"], file["x\x1b[31m"], file["tau\n"] = given["t"], given["q"], given["tau"]
    with refused(DatasetError, "no-such-quantity", "f.h5", r"x\x1b[31m (400 × 1)") as raised:
        measured(tmp_path / "f.h5", bench1)
    assert str(raised.value).isprintable()
    # As it is shown, so it is called.
    found = measured(tmp_path / "f.h5", bench1, mapping={"q_rad": r"x\x1b[31m"})
    np.testing.assert_array_equal(found.q_rad, given["q"])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
@pytest.mark.parametrize("name", ["f.csv", "f.csv.gz"])
def test_text_as_spreadsheets_write_it(
    tmp_path: Path, laas4: Robot, encoding: str, name: str
) -> None:
    text = write_csv(tmp_path / "f.txt", arrays(), mark="\t").read_text().encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    np.testing.assert_array_equal(measured(tmp_path / name, laas4).q_rad, arrays()["q"])


def test_few_rows_of_no_numbers_are_said(tmp_path: Path, laas4: Robot) -> None:
    given = arrays()
    given["tau"][7] = 1e10
    notes = measured(write_npz(tmp_path / "f.npz", given), laas4).notes
    assert any("1 of 400 rows" in note and "1e+09" in note for note in notes)


@pytest.mark.parametrize(
    "options",
    [
        {"mapping": {"q_rad": "p"}},
        {"mapping": {"q_rad": "q:1-2"}},
        {"mapping": {"t_s": "none"}},
        {"units": {"q_rad": "furlong"}},
        {"units": {"iq_a": "mA"}},
        {"rows": (1000, None)},
        {"mapping": {"t_s": "none"}, "is_resampled": True, "rate_hz": 1000.0},
    ],
)
def test_wrong_options_are_told_from_wrong_data(
    tmp_path: Path, laas4: Robot, options: dict[str, Any]
) -> None:
    with pytest.raises(OptionError):
        measured(write_npz(tmp_path / "f.npz", arrays()), laas4, **options)
