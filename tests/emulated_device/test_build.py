"""Building the preload library, and where it is kept."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import hw_mocks.spidev_shim as shim
from hw_mocks.shim_errors import CompilerMissingError, ShimBuildError

SOURCE = Path(shim.__file__).with_name("spidev_shim.c")


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small source in place of the real one, which is compiled often enough elsewhere."""
    path = tmp_path / "source.c"
    path.write_text("int small;\n")
    monkeypatch.setattr(shim, "_SOURCE", path)
    return path


@pytest.fixture
def cache(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "armature"


@pytest.mark.compiler
def test_the_source_compiles_without_warnings(compile_c: Callable[..., Path]) -> None:
    compile_c(SOURCE.read_text(), "-std=gnu11", "-O2", "-fPIC", "-shared", "-pthread")
    compile_c(SOURCE.read_text(), "-std=gnu11", "-O3", "-D_FORTIFY_SOURCE=2", "-fPIC", "-shared")


@pytest.mark.compiler
def test_the_library_is_built_once_into_a_private_cache(cache: Path) -> None:
    library = shim.build_shim()
    built = library.stat()
    assert library.parent == cache
    assert cache.stat().st_mode & 0o777 == 0o700
    assert shim.build_shim() == library
    assert library.stat() == built
    assert list(cache.iterdir()) == [library]


@pytest.mark.compiler
def test_a_changed_source_is_built_anew(cache: Path, source: Path) -> None:
    library = shim.build_shim()
    source.write_text("int changed;\n")
    assert shim.build_shim() != library


@pytest.mark.compiler
def test_parallel_builds_do_not_clash(cache: Path) -> None:
    code = "from hw_mocks.spidev_shim import build_shim; print(build_shim())"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE.parents[1])}
    builds = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment)
        for _ in range(3)
    ]
    outputs = {build.communicate(timeout=60)[0] for build in builds}
    assert [build.returncode for build in builds] == [0, 0, 0]
    assert len(outputs) == 1
    assert len(list(cache.iterdir())) == 1


@pytest.mark.compiler
def test_the_compilers_complaint_is_shown(cache: Path, source: Path) -> None:
    source.write_text("#error no such luck\n")
    with pytest.raises(ShimBuildError, match="no such luck") as caught:
        shim.build_shim()
    assert "no such luck" in caught.value.stderr
    assert not list(cache.iterdir())


def test_a_missing_compiler_says_what_to_install(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(CompilerMissingError, match="apt install gcc libc6-dev"):
        shim.build_shim()


def _spoil_by_file(cache: Path) -> None:
    cache.write_text("not a directory")


def _spoil_by_mode(cache: Path) -> None:
    cache.mkdir()
    cache.chmod(0o777)


@pytest.mark.compiler
@pytest.mark.parametrize("spoil", [_spoil_by_file, _spoil_by_mode])
def test_an_unusable_cache_is_replaced_by_a_private_directory(
    cache: Path, spoil: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    spoil(cache)
    with caplog.at_level(logging.WARNING):
        library = shim.build_shim()
    assert library.parent != cache
    assert library.parent.stat().st_mode & 0o777 == 0o700
    assert str(cache) in caplog.text


@pytest.mark.compiler
def test_a_cache_of_somebody_else_is_refused(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.mkdir(mode=0o700)
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert shim.build_shim().parent != cache


@pytest.mark.compiler
def test_a_cache_whose_path_ld_preload_cannot_carry_is_not_used(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "my cache"))
    assert " " not in str(shim.build_shim())


@pytest.mark.compiler
def test_the_environment_keeps_what_was_preloaded(cache: Path, tmp_path: Path) -> None:
    library = shim.build_shim()
    assert shim.shim_environment(tmp_path, {"A": "b"}) == {
        "A": "b",
        "LD_PRELOAD": str(library),
        "ARMATURE_SPIDEV_DIR": str(tmp_path),
    }
    base = {"LD_PRELOAD": "other.so"}
    assert shim.shim_environment(tmp_path, base)["LD_PRELOAD"] == f"{library}:other.so"
    assert base == {"LD_PRELOAD": "other.so"}
