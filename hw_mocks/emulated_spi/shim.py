"""The environment in which unmodified SPI programs see the emulated devices."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hw_mocks.emulated_spi.c_library import build_library

_DIRECTORY: Final = "ARMATURE_SPIDEV_DIR"


def announces_emulation(environment: Mapping[str, str]) -> bool:
    """Whether programs are to see emulated devices; `introduction.py` finds out whether they do."""
    return _DIRECTORY in environment


def shim_environment(directory: Path, base: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which programs see the devices of a `SpidevServer`'s directory.

    It is a copy of `base` that preloads the shim, before anything preloaded already.

    Raises:
        CompilerMissingError: No C compiler is on the PATH.
        LibraryBuildError: The compiler failed.
    """
    preload = [str(build_library("shim"))]
    if base.get("LD_PRELOAD"):
        preload.append(base["LD_PRELOAD"])
    return {**base, "LD_PRELOAD": ":".join(preload), _DIRECTORY: str(directory.resolve())}
