"""`armature robot`, and what drives a robot when there is nothing to drive."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daq.robot import load_robot
from estimation.errors import EstimationError

Armature = Callable[..., Any]


@pytest.fixture
def analysed(armature: Armature, tmp_path: Path) -> Path:
    """A robot file that came through a URDF."""
    urdf, made = tmp_path / "laas4.urdf", tmp_path / "other.toml"
    assert armature("robot", "to-urdf", "laas4", "--out", str(urdf)).exit_code == 0
    result = armature("robot", "from-urdf", str(urdf), "--out", str(made), "--name", "other")
    assert (result.exit_code, result.err) == (0, "")
    assert result.out == f"{made}: robot other, 4 joints; can be analysed, not driven\n"
    return made


def test_show_a_driven_robot(armature: Armature, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    result = armature("robot", "show", "laas4")
    assert result.exit_code == 0
    assert "4 joints; can be driven" in result.out
    assert re.search(r"joint1 .* 0.276 . mn5006 +.  +31 ", result.out)
    assert "total mass of the links: 1.487 kg" in result.out


def test_show_an_analysed_robot(
    armature: Armature, analysed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    result = armature("robot", "show", str(analysed))
    assert result.exit_code == 0
    assert "4 joints; can be analysed, not driven" in result.out
    assert re.search(r"joint1 .* 0.276 . transmission +. +31 ", result.out)


def test_show_as_json(armature: Armature, analysed: Path) -> None:
    facts = armature("robot", "show", str(analysed), "--json").json
    assert (facts["robot"], facts["is_driven"]) == ("other", False)
    assert facts["total_mass_kg"] == pytest.approx(1.487)
    assert [joint["gear_reduction"] for joint in facts["joints"]] == [31, 27, 31, 27]
    assert {joint["moved_by"] for joint in facts["joints"]} == {"transmission"}
    assert {joint["current_max_a"] for joint in facts["joints"]} == {None}
    driven = armature("robot", "show", "laas4", "--json").json["joints"][0]
    assert (driven["moved_by"], driven["motor"], driven["current_max_a"]) == ("drive", "mn5006", 20)


def test_show_what_can_be_told_apart(armature: Armature, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    result = armature("robot", "show", "laas4")
    assert "\n32 of 52 parameters are identifiable\n23 by themselves: mcy2, " in result.out
    assert "\n9 in combinations:\n" in result.out
    assert re.search(r"│ Izz1 +│ \+ Iyy2 \+ Iyy3 \+ Ia1 \+ 0.65·mcz3 \+ ", result.out)
    assert "\n11 lost, no torque depends on them: m1, mcx1, " in result.out
    assert "note" not in result.out


def test_show_what_can_be_told_apart_as_json(armature: Armature) -> None:
    facts = armature("robot", "show", "laas4", "--json").json
    assert (facts["rank"], facts["parameters"], facts["rounded"]) == (32, 52, 0)
    assert len(facts["base_parameters"]) == 32
    assert "mcx2 + mcz3 + 0.65·m4 + 0.325·m3" in facts["base_parameters"]
    lost = "m1 mcx1 mcy1 mcz1 Ixx1 Ixy1 Iyy1 Ixz1 Iyz1 m2 mcz2"
    assert facts["lost"] == lost.split()
    assert facts["base_parameters_problem"] is None


def test_show_that_angles_are_rounded(
    armature: Armature, analysed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = analysed.read_text()
    assert "1.5707963267948966" in text
    # Upright is only what the first joint turns about: tilt it, by what four digits leave.
    first = text.replace("rpy_rad = [0.0, 0.0, 0.0]", "rpy_rad = [3.1416, 0.0, 0.0]", 1)
    assert first != text
    analysed.write_text(first.replace("1.5707963267948966", "1.5708"))
    monkeypatch.setenv("COLUMNS", "150")
    result = armature("robot", "show", str(analysed))
    assert "36 of 56 parameters are identifiable" in result.out
    assert re.search(r"note: not counted, .* 1.5708 for a right angle: [1-9]\n", result.out)
    assert armature("robot", "show", str(analysed), "--json").json["rounded"] > 0


def test_show_the_rest_where_nothing_can_be_told_apart(
    armature: Armature, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = armature("robot", "show", "bench1", "--json").json
    assert (bench["rank"], bench["lost"], bench["base_parameters_problem"]) == (None, None, None)
    assert "base parameters" not in armature("robot", "show", "bench1").out

    def fail(_regressor: object) -> None:
        raise EstimationError("the rank cannot be told")

    with monkeypatch.context() as patched:
        patched.setattr("estimation.model.base.find_base", fail)
        result = armature("robot", "show", "laas4")
    assert result.exit_code == 0
    assert "total mass of the links: 1.487 kg\nbase parameters: the rank cannot be" in result.out

    # A computer that only drives robots has no Pinocchio.
    monkeypatch.setitem(sys.modules, "estimation.model.base", None)
    result = armature("robot", "show", "laas4")
    assert result.exit_code == 0
    assert re.search(r"1.487 kg\nbase parameters: needs .*: pip install", result.out)
    facts = armature("robot", "show", "laas4", "--json").json
    assert facts["rank"] is None
    assert "pip install" in facts["base_parameters_problem"]


def test_show_what_is_not_known(armature: Armature, tmp_path: Path) -> None:
    path = tmp_path / "bare.toml"
    path.write_text(
        'schema = 1\nname = "bare"\ndescription = ""\ncoupling = [[1, 0], [0.5, 1]]\n'
        + "".join(
            f'[[joints]]\nname = "q{i}"\ndh = {{ a_m = 0.1, d_m = 0, alpha_rad = 0 }}\n'
            "[joints.limits]\nposition_min_rad = -1\nposition_max_rad = 1\n"
            "velocity_max_rad_s = 2\ntorque_max_nm = 3\n"
            for i in range(2)
        )
    )
    result = armature("robot", "show", str(path))
    assert "total mass: not known (q0, q1 without link)" in result.out
    assert "motors are coupled" in result.out


def test_show_joints_with_long_names(
    armature: Armature, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    names = [f"panda_joint_of_the_arm_{number}" for number in range(1, 8)]
    path = tmp_path / "panda.toml"
    path.write_text(
        'schema = 1\nname = "panda"\ndescription = ""\ngravity_m_s2 = [0, 9.81, 0]\n'
        + "".join(
            f'[[joints]]\nname = "{name}"\ndh = {{ a_m = 0.1, d_m = 0, alpha_rad = 0 }}\n'
            "[joints.limits]\nposition_min_rad = -2.897\nposition_max_rad = 2.897\n"
            "velocity_max_rad_s = 2.175\ntorque_max_nm = 87\n"
            for name in names
        )
    )
    result = armature("robot", "show", str(path))
    assert result.exit_code == 0
    for name in names:
        assert name in result.out
    for word in ("kind", "moved by", "gear", "mass\n"):
        assert word not in result.out
    assert "gravity: 0, 9.81, 0 m/s²" in result.out
    assert "gravity" not in armature("robot", "show", "laas4").out
    monkeypatch.setenv("COLUMNS", "50")  # broken into lines, but not cut
    assert "…" not in armature("robot", "show", str(path)).out


def test_files_are_not_overwritten(armature: Armature, analysed: Path) -> None:
    before = analysed.read_bytes()
    urdf = analysed.with_name("laas4.urdf")
    for words in (["from-urdf", str(urdf)], ["to-urdf", "laas4"]):
        result = armature("robot", *words, "--out", str(analysed))
        assert (result.exit_code, result.out) == (2, "")
        assert f"--out {analysed}: " in result.err
    assert analysed.read_bytes() == before


def test_options_that_are_wrong_are_all_named(armature: Armature, tmp_path: Path) -> None:
    urdf = tmp_path / "a.urdf"
    out = str(tmp_path / "none" / "a.txt")
    result = armature("robot", "from-urdf", str(urdf), "--out", out, "--lock", "finger")
    assert result.exit_code == 2
    for words in (f"--out {out}: ", ".toml", "--lock finger: "):
        assert words in result.err
    assert len(result.err.splitlines()) == 1 + 3
    result = armature("robot", "from-urdf", str(urdf), "--out", str(tmp_path / "a.toml"))
    assert result.exit_code == 2
    assert f"{urdf}: " in result.err
    assert os.strerror(errno.ENOENT) in result.err


@pytest.mark.parametrize(
    ("data", "exit_code", "named"),
    [(b"\xff\xfe", 2, "UTF-8"), (b"<robot>", 1, "XML"), (b"x" * 5_000_001, 2, "5000000")],
)
def test_a_file_that_is_no_urdf(
    armature: Armature, tmp_path: Path, data: bytes, exit_code: int, named: str
) -> None:
    urdf, out = tmp_path / "a.urdf", tmp_path / "a.toml"
    urdf.write_bytes(data)
    result = armature("robot", "from-urdf", str(urdf), "--out", str(out))
    assert result.exit_code == exit_code
    assert f"{urdf.name}: " in result.err
    assert named in result.err
    assert not out.exists()


def test_locked_joints_and_a_tip(armature: Armature, analysed: Path, tmp_path: Path) -> None:
    urdf = str(analysed.with_name("laas4.urdf"))
    locked, cut = tmp_path / "locked.toml", tmp_path / "cut.toml"
    lock = ("--lock", "joint1=0.5", "--lock", "joint4=-0.5")
    assert armature("robot", "from-urdf", urdf, "--out", str(locked), *lock).exit_code == 0
    assert [joint.name for joint in load_robot(str(locked)).joints] == ["joint2", "joint3"]
    result = armature("robot", "from-urdf", urdf, "--out", str(cut), "--tip", "joint2_link")
    for name in ("joint2_link", "joint3", "joint4"):
        assert name in result.err
    assert len(load_robot(str(cut)).joints) == 2


def test_a_robot_without_links_has_no_urdf(armature: Armature, tmp_path: Path) -> None:
    out = tmp_path / "bench1.urdf"
    result = armature("robot", "to-urdf", "bench1", "--out", str(out))
    assert result.exit_code == 1
    assert "joint1" in result.err
    assert not out.exists()


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--link", "mock", "--duration", "1", "--record", "x.h5"),
        ("run", "--link", "mock", "--fast", "--duration", "1", "--record", "x.h5"),
        ("loop", "--link", "mock"),
        ("loop", "--link", "spi"),
        ("doctor", "--link", "mock"),
        ("doctor", "--link", "spi"),
        ("mock", "step"),
        ("mock", "truth"),
        ("mock", "truth", "--joint", "joint1"),
        ("mock", "serial"),
        ("bench", "friction", "--joint", "joint1", "--link", "mock", "--out", "results"),
        ("install-service", "--link", "spi"),
    ],
    ids=" ".join,
)
def test_what_drives_a_robot_says_that_this_one_cannot_be_driven(
    armature: Armature,
    analysed: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    verb, *rest = words
    action = [rest.pop(0)] if rest and not rest[0].startswith("-") else []
    result = armature(verb, *action, "--robot", str(analysed), *rest)
    assert (result.exit_code, result.out) == (2, "")
    for name in ("other", "boards", "drives"):  # the robot, and what its file lacks
        assert name in result.err
