"""A real arm, by the commands a user would type: the Stäubli TX40 recording that FIGAROH ships.

The recording is not part of the project; ARMATURE_DATA names the folder that holds it.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from public_data import data_folder

from tools.main import main

GEARS = (32, 32, 45, -48, 45, 32)
OFFSETS_RAD = (0.0, -math.pi / 2, math.pi / 2, 0.0, 0.0, 0.0)
# Of FIGAROH's configuration; whether they were fitted on this recording is not said. The viscous
# friction of its wrist joints contains that of the sixth motor, which turns with both.
VISCOUS = (8.05, 5.53, 1.97, 1.11, 1.86, 0.65)
COULOMB = (7.14, 8.26, 6.34, 2.48, 3.03, 0.282)
VISCOUS_MOTOR_6, COULOMB_MOTOR_6 = 0.616, 1.95
# What a plain script reached (least squares, naive split in time), see the data's README.
PLAIN_SPLIT_PERCENT = 13.3


def armature(*words: str | Path) -> str:
    """Runs a command line; returns what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main([str(word) for word in words]) == 0
    return out.getvalue()


def identify(*words: str | Path) -> Any:
    return json.loads(armature("identify", *words, "--json"))


def geared(text: str) -> str:
    """A robot file with gears, and a sixth motor that also turns with the fifth joint."""
    rows = [[float(row == column) for column in range(6)] for row in range(6)]
    rows[5][4] = 1.0
    head, *joints = text.split("[[joints]]\n")
    parts = [head.replace("[estimation]", f"coupling = {rows}\n\n[estimation]")]
    for joint, gear, offset_rad in zip(joints, GEARS, OFFSETS_RAD, strict=True):
        parts.append(
            f"{joint.rstrip()}\n\n[joints.transmission]\ngear_reduction = {abs(gear)}\n"
            f"direction = {1 if gear > 0 else -1}\njoint_offset_rad = {offset_rad}\n\n"
        )
    return "[[joints]]\n".join(parts)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = data_folder("tx40_figaroh")
    folder = tmp_path_factory.mktemp("tx40")
    robot, path = folder / "tx40.toml", folder / "tx40.h5"
    armature("robot", "from-urdf", data / "tx40_mdh_modified.urdf", "--out", robot)
    robot.write_text(geared(robot.read_text()))
    files = [data / "pos_read_data.csv", data / "curr_data.csv"]
    words = "--rate 5000 --side motor --map q_rad=pos_read_data.csv --map tau_nm=curr_data.csv"
    armature("import", *files, "--robot", robot, "--out", path, *words.split())
    return path


def methods(result: Any) -> dict[str, Any]:
    return {method["name"]: method for method in result["methods"]}


def test_fit_and_friction_over_all_rows(recording: Path) -> None:
    result = identify(recording, "--slow", "0", "--method", "uls", "cls2")
    assert result["rank"] == 61
    found = methods(result)
    for name in ("uls", "cls2"):
        assert found[name]["identification"]["all_rows"] < 7.0  # 6.3; the plain script: 7.4
    assert found["cls2"]["consistent"]
    values = {row["symbol"]: row["value"] for row in result["base_parameters"]}
    for number, (viscous, coulomb) in enumerate(zip(VISCOUS, COULOMB, strict=True), 1):
        motor = values["fvm6"] if number in (5, 6) else 0.0
        assert values[f"fv{number}"] + motor == pytest.approx(viscous, rel=0.15)
        assert values[f"fc{number}"] == pytest.approx(coulomb, rel=0.4)
    assert values["fvm6"] == pytest.approx(VISCOUS_MOTOR_6, rel=0.15)
    assert values["fcm6"] == pytest.approx(COULOMB_MOTOR_6, rel=0.4)


def test_what_is_left_of_the_motion_is_predicted(recording: Path) -> None:
    result = identify(recording, "--rows", "0:0.6", "--split", "--method", "uls", "wls", "cls2")
    assert result["rank"] == 61
    found = methods(result)
    for method in found.values():
        assert method["validation"]["all_rows"] < PLAIN_SPLIT_PERCENT
    assert found["cls2"]["validation"]["all_rows"] < 11.5  # 10.8
    assert found["cls2"]["validation_percent"] < 7.5  # 6.5, where joints move
