"""Finds the programs that have a device open, with or without a lock, as `fuser` does."""

from __future__ import annotations

import os
from pathlib import Path

_PROC = Path("/proc")


def programs_using(device: str) -> list[str]:
    """Return the other programs that have a device open, as far as this user may see them."""
    target = os.path.realpath(device)
    found = []
    for process in _PROC.iterdir():
        if not process.name.isdecimal() or int(process.name) == os.getpid():
            continue
        try:
            is_user = any(os.readlink(link) == target for link in (process / "fd").iterdir())
            name = (process / "comm").read_text(errors="replace").strip() if is_user else ""
        except OSError:  # ended meanwhile, or not ours to look at
            continue
        if is_user:
            found.append(f"{name} (process {process.name})")
    return found
