"""The version of the distribution, read by the build and by `armature --version`."""

from __future__ import annotations

import subprocess
from pathlib import Path

__version__ = "0.2.0.dev0"


def commit() -> str:
    """Return the commit of the checkout that this runs from; empty when it runs from none."""
    root = Path(__file__).parents[1]
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
