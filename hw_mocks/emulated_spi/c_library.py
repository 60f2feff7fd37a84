"""Builds the C sources of this package on first use, into the user's cache."""

from __future__ import annotations

import atexit
import functools
import hashlib
import logging
import os
import platform
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hw_mocks.errors import CompilerMissingError, LibraryBuildError

_logger = logging.getLogger(__name__)

_DIRECTORY = Path(__file__).with_name("c")
_COMPILERS = ("cc", "gcc", "clang")
_FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-shared", "-pthread")
_LIBRARIES = ("-ldl",)
_BUILD_TIMEOUT_S = 120.0


def build_library(name: str, directory: Path = _DIRECTORY) -> Path:
    """Compile a library of `NAME.c` and `NAME_*.c` unless this very version is in the cache.

    Raises:
        CompilerMissingError: No C compiler is on the PATH.
        LibraryBuildError: The compiler failed.
    """
    identity = "\0".join((*_FLAGS, *_LIBRARIES, platform.machine(), *platform.libc_ver())).encode()
    sources = sorted(directory.glob(f"{name}.c")) + sorted(directory.glob(f"{name}_*.c"))
    texts = [path.read_bytes() for path in (*sources, *sorted(directory.glob("*.h")))]
    digest = hashlib.sha256(b"\0".join((identity, *texts))).hexdigest()[:16]
    library = _cache_directory() / f"{name}-{digest}.so"
    if not library.exists():
        _compile(_find_compiler(), sources, library)
    return library


def _find_compiler() -> str:
    for name in _COMPILERS:
        path = shutil.which(name)
        if path is not None:
            return os.path.realpath(path)
    raise CompilerMissingError(_COMPILERS)


def _compile(compiler: str, sources: Sequence[Path], library: Path) -> None:
    """Compile under a temporary name and rename, so that parallel builds do not clash."""
    descriptor, temporary = tempfile.mkstemp(suffix=".so", dir=library.parent)
    os.close(descriptor)
    command = [compiler, *_FLAGS, "-o", temporary, *map(str, sources), *_LIBRARIES]
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_BUILD_TIMEOUT_S
        )
        if result.returncode != 0:
            raise LibraryBuildError(command, result.stderr)
        os.replace(temporary, library)
    except subprocess.TimeoutExpired as error:
        raise LibraryBuildError(command, f"no end after {_BUILD_TIMEOUT_S:.0f} s") from error
    finally:
        Path(temporary).unlink(missing_ok=True)


def _cache_directory() -> Path:
    """Return the user's cache, or a private temporary directory where that cannot be used."""
    root = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(root) if os.path.isabs(root) else Path("~/.cache").expanduser()
    directory = base / "armature"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        problem = _why_unusable(directory)
    except OSError as error:
        problem = str(error)
    if problem is None:
        return directory
    _logger.warning("the cache %s is not used: %s", directory, problem)
    return _temporary_directory()


def _why_unusable(directory: Path) -> str | None:
    """Say why a library must not be loaded from this directory, if so."""
    status = directory.stat()
    if status.st_uid != os.geteuid():
        return f"it belongs to user {status.st_uid}, who could plant a library in it"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others may write to it (mode {status.st_mode & 0o777:o}); chmod 700 cures that"
    if not os.access(directory, os.W_OK | os.X_OK):
        return "it is not writable"
    if re.search(r"[\s:]", str(directory)):
        return "LD_PRELOAD cannot carry a path with a space or a colon"
    return None


@functools.cache
def _temporary_directory() -> Path:
    """Make one private directory for this process; it goes when the process ends."""
    directory = tempfile.mkdtemp(prefix="armature-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return Path(directory)
