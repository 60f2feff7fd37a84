"""A real bench, published with its results, by the commands a user would type.

EMPS of Janot, Gautier and Brunot, 2019: a carriage that a motor drives along a level screw. Beside
a link that turns about an upright axis it differs in its units only (kg and N for kg·m² and N·m):
gravity does no work on either.

The recordings are not part of the project; ARMATURE_DATA names the folder that holds them.
"""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
from public_data import data_folder

from tools.main import main

RATE_HZ = 1000
FILES = ("DATA_EMPS", "DATA_EMPS_PULSES")
PUBLISHED = {"Izz1": 95.1089, "fv1": 203.5034, "fc1": 20.3935, "off1": -3.1648}
"""M (kg), Fv (N·s/m), Fc (N), offset (N)."""
PUBLISHED_SIGMA = {"Izz1": 0.1085, "fv1": 1.146, "fc1": 0.1012, "off1": 0.0444}
PUBLISHED_PERCENT, PUBLISHED_PULSES_PERCENT = 4.0834, 5.9824
URDF = """<robot name="emps">
  <link name="base"/>
  <link name="carriage">
    <inertial>
      <mass value="100"/>
      <inertia ixx="100" iyy="100" izz="100" ixy="0" ixz="0" iyz="0"/>
    </inertial>
  </link>
  <joint name="slide" type="revolute">
    <parent link="base"/>
    <child link="carriage"/>
    <axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" velocity="2" effort="500"/>
  </joint>
</robot>"""


def armature(*words: str | Path) -> str:
    """Run a command line; return what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main([str(word) for word in words]) == 0
    return out.getvalue()


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    data, folder = data_folder("emps"), tmp_path_factory.mktemp("emps")
    urdf, robot = folder / "emps.urdf", folder / "emps.toml"
    urdf.write_text(URDF)
    armature("robot", "from-urdf", urdf, "--out", robot)
    paths = []
    for name in FILES:
        record = scipy.io.loadmat(data / f"{name}.mat")
        force = record["gtau"].item() * record["vir"]
        samples, path = folder / f"{name}.npz", folder / f"{name}.h5"
        np.savez(samples, q_rad=record["qm"].reshape(-1, 1), tau_nm=force.reshape(-1, 1))
        armature("import", samples, "--robot", robot, "--out", path, "--rate", str(RATE_HZ))
        paths.append(path)
    return paths


def identify(recordings: list[Path], *terms: str) -> Any:
    words = ("--validate", recordings[1], "--terms", ",".join(terms), "--method", "uls", "cls2")
    return json.loads(armature("identify", recordings[0], *words, "--json"))


@pytest.fixture(scope="module")
def found(recordings: list[Path]) -> Any:
    return identify(recordings, "viscous", "coulomb", "offset")


def errors(result: Any, method: str) -> tuple[float, float]:
    row = next(row for row in result["methods"] if row["name"] == method)
    return row["identification"]["moving"], row["validation"]["moving"]


def test_published_parameters_are_found(found: Any) -> None:
    rows = {row["symbol"]: row for row in found["base_parameters"]}
    assert rows.keys() == PUBLISHED.keys()
    for symbol, published in PUBLISHED.items():
        assert rows[symbol]["low"] <= published <= rows[symbol]["high"]
    assert rows["Izz1"]["value"] == pytest.approx(PUBLISHED["Izz1"], rel=1e-3)
    for symbol in ("fv1", "fc1", "off1"):
        assert rows[symbol]["value"] == pytest.approx(PUBLISHED[symbol], rel=0.06)


def test_ordinary_sigma_are_the_published_ones_and_far_too_small(found: Any) -> None:
    for row in found["base_parameters"]:
        ordinary = row["sigma_ordinary"]
        assert ordinary == pytest.approx(PUBLISHED_SIGMA[row["symbol"]], rel=0.15)
        assert row["sigma"] > 4.0 * ordinary


def test_errors_are_those_of_the_publication_or_less(found: Any) -> None:
    for method in ("uls", "cls2"):
        known, unknown = errors(found, method)
        assert known < PUBLISHED_PERCENT
        assert unknown < PUBLISHED_PULSES_PERCENT


def test_friction_that_differs_between_directions_explains_more(
    recordings: list[Path], found: Any
) -> None:
    better = identify(recordings, "viscous", "coulomb", "offset", "asymmetric")
    for less, more in zip(errors(better, "uls"), errors(found, "uls"), strict=True):
        assert less < 0.9 * more
    mass = next(row for row in better["base_parameters"] if row["symbol"] == "Izz1")
    assert mass["value"] == pytest.approx(PUBLISHED["Izz1"], rel=2e-3)
