"""What is tried under `make test`, and how much more of it under `make acceptance`."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

IS_LONG = bool(os.environ.get("ARMATURE_ACCEPTANCE"))
ONLY = (
    pytest.mark.acceptance,
    pytest.mark.skipif(not IS_LONG, reason="long: under `make acceptance`"),
)


def only(test: Callable[..., None]) -> Callable[..., None]:
    """Mark a test that is too long for `make test`, where something shorter stands for it."""
    for mark in ONLY:
        test = mark(test)
    return test


def examples(count: int) -> int:
    """So many draws of a property; a quarter of them under `make test`, others in every run."""
    return count if IS_LONG else max(count // 4, 5)
