"""What is shipped, and that it is ours that is imported."""

from __future__ import annotations

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


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_no_foreign_package_shadows_ours(package: str) -> None:
    """Names like `tools` and `daq` are popular: whoever installs another one must hear of it."""
    # A fresh interpreter somewhere else, so that the working directory cannot help.
    code = f"import {package}; print({package}.__path__[0])"
    found = subprocess.run(
        [sys.executable, "-c", code], cwd="/", check=True, capture_output=True, text=True
    )
    assert Path(found.stdout.strip()) == PROJECT / package, "a foreign package shadows ours"
    owners = set(packages_distributions().get(package, ["armature"]))
    assert owners == {"armature"}, f"{package} is installed by {owners} too: uninstall the other"


def test_extras_keep_hardware_off_laptops_and_mathematics_off_the_robot() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    names = {extra: {text.partition(">")[0] for text in texts} for extra, texts in extras.items()}
    base = {text.partition(">")[0] for text in project["dependencies"]}
    assert base == {"numpy", "h5py", "pyzmq", "msgspec", "rich", "tomlkit"}
    assert names["robot"] == {"spidev", "pyserial"}
    assert names["sim"] == {"mujoco"}
    assert names["estimation"] == {"scipy", "pin", "cvxpy", "clarabel"}
    assert names["report"] == {"matplotlib"}
    assert extras["all"] == ["armature[robot,sim,estimation,report]"]
    assert project["requires-python"] == ">=3.11"


def test_every_module_imports() -> None:
    modules = [
        ".".join(path.relative_to(PROJECT).with_suffix("").parts)
        for package in PACKAGES
        for path in (PROJECT / package).rglob("*.py")
    ]
    assert len(modules) > 40
    for module in modules:
        importlib.import_module(module.removesuffix(".__init__"))
