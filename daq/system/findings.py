"""What a diagnosis finds: one statement each, with the fix where there is something to fix."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Level(Enum):
    """How much a finding matters."""

    OK = "ok"
    NOTE = "note"
    """Worth knowing; nothing to do."""
    WARNING = "warning"
    """The robot runs, but not as well as it could."""
    PROBLEM = "problem"
    """The robot cannot run."""


class Finding(NamedTuple):
    """One statement about one thing.

    Attributes:
        level: How much it matters.
        subject: What it is about.
        text: What was found.
        fix: What to do, empty when there is nothing to do.
        code: What was found, in a word for programs; empty where level and subject say it.
    """

    level: Level
    subject: str
    text: str
    fix: str = ""
    code: str = ""
