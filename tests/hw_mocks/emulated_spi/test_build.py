"""Building the C libraries, and where they are kept."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hw_mocks.emulated_spi import c_library
from hw_mocks.emulated_spi.c_library import build_library
from hw_mocks.emulated_spi.shim import shim_environment
from hw_mocks.errors import CompilerMissingError, LibraryBuildError

pytestmark = pytest.mark.system

SOURCES = Path(c_library.__file__).with_name("c")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "small.c"
    path.write_text('#include "small.h"\nint small = SMALL;\n')
    path.with_name("small.h").write_text("enum { SMALL = 1 };\n")
    return path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "armature"


@pytest.mark.compiler
@pytest.mark.parametrize("source", sorted(SOURCES.glob("*.c")), ids=lambda path: path.name)
def test_our_sources_compile_without_warnings(compile_c: Callable[..., Path], source: Path) -> None:
    flags = ("-O3", "-pthread", "-D_FORTIFY_SOURCE=2", "-std=gnu11", "-fPIC", "-shared")
    compile_c(source.read_text(), f"-I{SOURCES}", *flags)


@pytest.mark.compiler
def test_programs_see_nothing_of_the_shim_but_what_it_replaces(shim_cache: Path) -> None:
    (library,) = (shim_cache / "armature").glob("shim-*.so")
    symbols = subprocess.run(
        ["nm", "--dynamic", "--defined-only", "--format=just-symbols", library],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert {"open", "ioctl", "read", "stat", "readdir"} <= set(symbols)
    ours = {"lock", "directory", "initialise", "find_node", "spidev_ioctl", "real_open"}
    assert not ours & set(symbols)


@pytest.mark.compiler
def test_the_library_is_built_once_into_a_private_cache(cache: Path, source: Path) -> None:
    library = build_library("small", source.parent)
    built = library.stat()
    assert library.parent == cache
    assert cache.stat().st_mode & 0o777 == 0o700
    assert build_library("small", source.parent) == library
    assert library.stat() == built
    assert list(cache.iterdir()) == [library]


@pytest.mark.compiler
def test_a_changed_source_is_built_anew(cache: Path, source: Path) -> None:
    library = build_library("small", source.parent)
    source.with_name("small.h").write_text("enum { SMALL = 2 };\n")
    with_other_header = build_library("small", source.parent)
    source.write_text("int changed;\n")
    assert len({library, with_other_header, build_library("small", source.parent)}) == 3


@pytest.mark.compiler
def test_parallel_builds_do_not_clash(cache: Path, source: Path) -> None:
    code = (
        "import pathlib, sys; from hw_mocks.emulated_spi.c_library import build_library;"
        "print(build_library('small', pathlib.Path(sys.argv[1])))"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCES.parents[2])}
    command = [sys.executable, "-c", code, str(source.parent)]
    builds = [subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) for _ in range(3)]
    outputs = {build.communicate(timeout=60)[0] for build in builds}
    assert [build.returncode for build in builds] == [0, 0, 0]
    assert len(outputs) == 1
    assert len(list(cache.iterdir())) == 1


@pytest.mark.compiler
def test_the_compilers_complaint_is_shown(cache: Path, source: Path) -> None:
    source.write_text("#error no such luck\n")
    with pytest.raises(LibraryBuildError) as caught:
        build_library("small", source.parent)
    assert "no such luck" in caught.value.stderr
    assert not list(cache.iterdir())


def test_a_missing_compiler_says_what_to_install(
    cache: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(CompilerMissingError) as caught:
        build_library("small", source.parent)
    assert "cc" in caught.value.tried
    assert "apt install gcc" in str(caught.value)


@pytest.mark.compiler
def test_what_is_built_already_needs_no_compiler(
    cache: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = build_library("small", source.parent)
    monkeypatch.setenv("PATH", "")
    assert build_library("small", source.parent) == library


def _spoil_by_file(cache: Path) -> None:
    cache.write_text("not a directory")


def _spoil_by_mode(cache: Path) -> None:
    cache.mkdir()
    cache.chmod(0o777)


@pytest.mark.compiler
@pytest.mark.parametrize("spoil", [_spoil_by_file, _spoil_by_mode])
def test_an_unusable_cache_is_replaced_by_a_private_directory(
    cache: Path, source: Path, spoil: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    spoil(cache)
    with caplog.at_level(logging.WARNING):
        library = build_library("small", source.parent)
    assert library.parent != cache
    assert library.parent.stat().st_mode & 0o777 == 0o700
    assert str(cache) in caplog.text


@pytest.mark.compiler
def test_a_cache_of_somebody_else_is_refused(
    cache: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.mkdir(mode=0o700)
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert build_library("small", source.parent).parent != cache


@pytest.mark.compiler
def test_a_cache_whose_path_ld_preload_cannot_carry_is_not_used(
    cache: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "my cache"))
    assert " " not in str(build_library("small", source.parent))


@pytest.mark.compiler
def test_the_environment_keeps_what_was_preloaded(
    shim_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(shim_cache))
    library = build_library("shim")
    assert shim_environment(tmp_path, {"A": "b"}) == {
        "A": "b",
        "LD_PRELOAD": str(library),
        "ARMATURE_SPIDEV_DIR": str(tmp_path),
    }
    base = {"LD_PRELOAD": "other.so"}
    assert shim_environment(tmp_path, base)["LD_PRELOAD"] == f"{library}:other.so"
    assert base == {"LD_PRELOAD": "other.so"}
