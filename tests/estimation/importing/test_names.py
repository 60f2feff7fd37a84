"""What columns mean by their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused

from daq.robot import Robot, parse_robot
from estimation.errors import DatasetError
from estimation.importing.files import read_array_file
from estimation.importing.measurements import ImportOptions, Measurements, measure
from estimation.importing.names import clock_of, joint_of, meaning_of, robot_order

JOINTS = ("shoulder_pan_joint", "elbow_joint", "wrist_1_joint", "wrist_1_joint_b")
ALPHABETICAL = ("elbow", "shoulder", "wrist")
ROBOT = ("shoulder", "elbow", "wrist")
ROWS = 300


@pytest.fixture(scope="module")
def robot() -> Robot:
    text = "schema = 1\nname = 'arm'\ndescription = ''\n"
    for name in ROBOT:
        text += f"[[joints]]\nname = '{name}'\ndh = {{ a_m = 0, d_m = 0, alpha_rad = 0 }}\n"
        text += "[joints.limits]\nposition_min_rad = -5\nposition_max_rad = 5\n"
        text += "velocity_max_rad_s = 20\ntorque_max_nm = 200\n"
    return parse_robot(text, "arm")


def values(place: int) -> np.ndarray:
    return 0.1 * place + np.linspace(0.0, 0.01, ROWS)


def write(path: Path, columns: dict[str, np.ndarray]) -> Path:
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(repr(float(cell)) for cell in row) for row in rows)]
    path.write_text("\n".join([*lines, ""]))
    return path


def named(pattern: str, names: tuple[str, ...] = ALPHABETICAL) -> dict[str, np.ndarray]:
    """A column per joint, as ROS has them: by the alphabet, not along the arm."""
    return {pattern.replace("*", name): values(ROBOT.index(name)) for name in names}


def measured(path: Path, robot: Robot, **options: Any) -> Measurements:
    how = {"mapping": {}, "units": {}, **options}
    return measure([read_array_file(path)], robot, ImportOptions(**how))


@pytest.mark.parametrize(
    ("name", "key", "place", "unit"),
    [
        ("elbow_joint_pos", "q_rad", 1, None),
        ("position/elbow_joint", "q_rad", 1, None),
        ("/joint_states/elbow_joint/position", "q_rad", 1, None),
        ("joint_states.Elbow_Joint.velocity", "dq_rad_s", 1, None),
        ("effort wrist_1_joint", "tau_nm", 2, None),
        ("tau_wrist_1_joint_b_nm", "tau_nm", 3, "Nm"),
        ("elbow_joint position [deg]", "q_rad", 1, "deg"),
        ("current.elbow_joint_mA", "iq_a", 1, "mA"),
        ("elbow_joint/pos_ref", "q_ref_rad", 1, None),
    ],
)
def test_names_of_joints(name: str, key: str, place: int, unit: str | None) -> None:
    meaning = meaning_of(name, JOINTS)
    assert meaning is not None
    assert (meaning.key, meaning.place, meaning.is_joint, meaning.unit) == (key, place, True, unit)


@pytest.mark.parametrize(
    ("name", "key", "place"),
    [
        ("__time", "t_s", 0),
        ("log.t_s", "t_s", 0),
        ("/joint_states/position[3]", "q_rad", 3),
        ("/joint_states/effort.3", "tau_nm", 3),
        ("field.velocity0", "dq_rad_s", 0),
        ("tau_J7", "tau_nm", 7),
        ("/controller/reference/position[2]", "q_ref_rad", 2),
    ],
)
def test_names_with_numbers(name: str, key: str, place: int) -> None:
    meaning = meaning_of(name, JOINTS)
    assert meaning is not None
    assert (meaning.key, meaning.place, meaning.is_joint) == (key, place, False)


@pytest.mark.parametrize(
    "name",
    [
        "elbow_joint",
        "desired/elbow_joint/position",
        "/controller/goal/position[0]",
        "elbow_joint_temperature",
        "elbow_joint_shoulder_pan_joint_pos",
        "elbow_jointed_pos",
        "target_moment_0",
        "",
    ],
)
def test_other_names(name: str) -> None:
    assert meaning_of(name, JOINTS) is None


def test_the_longest_joint_counts() -> None:
    assert joint_of("q_wrist_1_joint_b", JOINTS) == 3
    assert joint_of("q_wrist_1_joint", JOINTS) == 2
    assert joint_of("q_wrist_10_joint", JOINTS) is None


def test_columns_without_joints_stay_as_they_are() -> None:
    assert robot_order(["b", "a"], JOINTS, "q") == [0, 1]
    assert robot_order(["elbow_joint 1", "elbow_joint 2"], JOINTS, "q") == [0, 1]


def test_clocks_in_two_columns() -> None:
    assert clock_of("header.stamp.sec") == ("header_stamp", False)
    assert clock_of("header.stamp.nanosec") == ("header_stamp", True)
    assert clock_of("nsecs") == ("", True)
    assert clock_of("insects") is None


@pytest.mark.parametrize(
    ("q", "tau", "mapping"),
    [
        ("position/*", "effort/*", {}),
        ("*_pos", "*_torque", {}),
        ("/joint_states/*/position", "/joint_states/*/effort", {}),
        ("*.act", "out.*", {"q_rad": "*.act", "tau_nm": "out.*"}),
    ],
)
def test_joints_are_put_in_the_robots_order(
    tmp_path: Path, robot: Robot, q: str, tau: str, mapping: dict[str, str]
) -> None:
    columns = {"time": np.arange(ROWS) / 100.0, **named(q), **named(tau)}
    found = measured(write(tmp_path / "f.csv", columns), robot, mapping=mapping)
    expected = np.column_stack([values(place) for place in range(3)])
    np.testing.assert_array_equal(found.q_rad, expected)
    np.testing.assert_array_equal(found.tau_nm, expected)
    assert found.notes[0].startswith("q_rad, tau_nm: ")
    assert found.notes[0].endswith(": shoulder, elbow, wrist")


def test_what_is_listed_one_by_one_stays_in_that_order(tmp_path: Path, robot: Robot) -> None:
    columns = {"time": np.arange(ROWS) / 100.0, **named("p_*"), **named("tau_*", ROBOT)}
    path = write(tmp_path / "f.csv", columns)
    found = measured(path, robot, mapping={"q_rad": "p_elbow,p_shoulder,p_wrist"})
    np.testing.assert_array_equal(found.q_rad[:, 0], values(1))
    (note,) = found.notes
    assert all(name in note for name in ("q_rad", "shoulder", "f.csv:p_elbow", "--map"))


def test_joints_of_a_gripper_are_left_out(tmp_path: Path, robot: Robot) -> None:
    columns = {"time": np.arange(ROWS) / 100.0, "p_finger": values(9), **named("p_*", ROBOT)}
    columns |= {**named("tau_*", ROBOT), "tau_finger": values(9)}
    found = measured(write(tmp_path / "f.csv", columns), robot, mapping={"q_rad": "p_*"})
    np.testing.assert_array_equal(found.q_rad[:, 0], values(0))
    (note,) = found.notes
    assert note.startswith("q_rad: ")
    assert note.endswith(": f.csv:p_finger")


@pytest.mark.parametrize("mapping", [{}, {"q_rad": "pos/*"}])
def test_a_joint_without_a_column_is_named(
    tmp_path: Path, robot: Robot, mapping: dict[str, str]
) -> None:
    columns = {"time": np.arange(ROWS) / 100.0, **named("pos/*", ("elbow", "shoulder"))}
    path = write(tmp_path / "f.csv", {**columns, **named("tau_*")})
    with refused(DatasetError, "joint-without-column", "pos/elbow", "wrist"):
        measured(path, robot, mapping=mapping)


def test_places_in_a_tree_that_differ_are_asked_for(tmp_path: Path, robot: Robot) -> None:
    columns = {"time": np.arange(ROWS) / 100.0, **named("left/*/pos"), **named("right/*/pos")}
    path = write(tmp_path / "f.csv", {**columns, **named("tau_*")})
    with refused(DatasetError, "ambiguous-columns", "f.csv:left/elbow/pos", "f.csv:right/"):
        measured(path, robot)


# --- hints ----------------------------------------------------------------------------------------


def numbered(*names: str) -> dict[str, np.ndarray]:
    return {f"{name}_{n}": values(n) for name in names for n in range(3)}


def test_what_a_controller_wanted_is_not_suggested_for_torque(tmp_path: Path, robot: Robot) -> None:
    columns = numbered("target_moment", "target_speed", "real_ang", "real_speed", "motor_amps")
    path = write(tmp_path / "f.csv", {"time": np.arange(ROWS) / 100.0, **columns})
    with refused(DatasetError, "no-such-quantity") as raised:
        measured(path, robot)
    assert str(raised.value).endswith(
        "--map 'q_rad=real_ang_*' --map 'iq_a=motor_amps_*' --map 'dq_rad_s=real_speed_*'"
    )


def test_velocities_are_not_lost_silently(tmp_path: Path, robot: Robot) -> None:
    columns = {"time": np.arange(ROWS) / 100.0, **numbered("q", "real_speed", "tau")}
    path = write(tmp_path / "f.csv", columns)
    (note,) = measured(path, robot).notes
    assert "--map 'dq_rad_s=real_speed_*'" in note
    assert measured(path, robot, mapping={"dq_rad_s": "none"}).notes == ()


def test_whole_seconds_are_not_suggested_for_time(tmp_path: Path, robot: Robot) -> None:
    columns = {"clock_sec": np.arange(ROWS) // 100, **numbered("q", "tau")}
    with refused(DatasetError, "no-times", "t_s") as raised:
        measured(write(tmp_path / "f.csv", columns), robot)
    assert "t_s=clock_sec" not in str(raised.value)


@pytest.mark.parametrize("name", ["actual_current", "i", "iq", "M_I"])
def test_currents_that_are_taken_for_torques_are_said(
    tmp_path: Path, robot: Robot, name: str
) -> None:
    columns = {"time": np.arange(ROWS) / 100.0, **numbered("q", name)}
    path = write(tmp_path / "f.csv", columns)
    mapping = {"tau_nm": f"{name}_*"}
    (note,) = measured(path, robot, mapping=mapping).notes
    assert f"tau_nm (f.csv:{name}_0 … {name}_2)" in note
    assert f"--map 'iq_a={name}_*'" in note
    assert measured(path, robot, mapping=mapping, units={"tau_nm": "0.1"}).notes == ()
