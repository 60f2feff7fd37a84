"""What is shipped, and that it is ours that is imported."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PACKAGES = {"firmware_protocol", "daq", "estimation", "hw_mocks", "tools"}
MODULES = {"pin": "pinocchio", "pyserial": "serial", "pyzmq": "zmq"}
"""By the names of packages that are called otherwise."""
BY_NAME = {"clarabel"}
"""Never imported: cvxpy is told its name."""


@pytest.fixture(scope="module")
def wheel(processes: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir"]
    subprocess.run([*command, directory, PROJECT], check=True, capture_output=True)
    (path,) = directory.glob("armature-*.whl")
    return path


def test_the_wheel_holds_exactly_the_five_packages(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    top = {name.split("/")[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == PACKAGES
    for needed in (
        "daq/robot/robots/laas4.toml",
        "daq/robot/robots/bench1.toml",
        "hw_mocks/emulated_spi/c/shim_nodes.c",
        "hw_mocks/emulated_spi/c/dma_buffer.h",
        *(f"{package}/py.typed" for package in PACKAGES),
    ):
        assert needed in names
    assert not [name for name in names if "test" in name]


@pytest.mark.system
def test_no_foreign_package_shadows_ours() -> None:
    """Names like `tools` and `daq` are popular: whoever installs another one must hear of it."""
    # A fresh interpreter somewhere else, so that the working directory cannot help.
    names = sorted(PACKAGES)
    code = f"import {', '.join(names)}\nfor each in {', '.join(names)}: print(each.__path__[0])"
    found = subprocess.run(
        [sys.executable, "-c", code], cwd="/", check=True, capture_output=True, text=True
    )
    assert found.stdout.split() == [str(PROJECT / name) for name in names], "one shadows ours"
    distributions = packages_distributions()
    for name in names:
        owners = set(distributions.get(name, ["armature"]))
        assert owners == {"armature"}, f"{name} is installed by {owners} too: uninstall the other"


def foreign_modules() -> set[str]:
    """What our packages import of others."""
    names: set[str] = set()
    for path in (path for package in PACKAGES for path in (PROJECT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add((node.module or "").partition(".")[0])
    return names - PACKAGES - sys.stdlib_module_names


def test_what_is_imported_is_declared_and_what_is_declared_is_imported() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    extras = {
        extra: {text.partition(">")[0] for text in texts}
        for extra, texts in project["optional-dependencies"].items()
    }
    base = {text.partition(">")[0] for text in project["dependencies"]}
    parts = sorted(extras.keys() - {"all"})
    declared = base.union(*(extras[part] for part in parts))
    assert foreign_modules() == {MODULES.get(name, name) for name in declared - BY_NAME}
    # Hardware stays off laptops, and mathematics off the robot.
    hardware = {"spidev", "pyserial"}
    assert extras["robot"] == hardware
    assert not hardware & base.union(*(extras[part] for part in parts if part != "robot"))
    assert not {"scipy", "pin", "cvxpy", "mujoco", "matplotlib"} & base
    (everything,) = extras["all"]
    assert set(everything.partition("[")[2].rstrip("]").split(",")) == set(parts)


def test_every_module_imports() -> None:
    modules = [
        ".".join(path.relative_to(PROJECT).with_suffix("").parts)
        for package in PACKAGES
        for path in (PROJECT / package).rglob("*.py")
    ]
    assert len(modules) > 40
    for module in modules:
        importlib.import_module(module.removesuffix(".__init__"))
