"""Sentences about limits."""

from __future__ import annotations

import pytest

from daq.loop.wording import beyond


@pytest.mark.parametrize(
    ("value", "limit", "text"),
    [
        (5.1, 5.0, "5.1 A, limit 5 A"),
        (5.00004, 5.0, "5.00004 A, limit 5 A"),
        (-5.0000004, 5.0, "-5.0000004 A, limit 5 A"),
        (-6.2832, -6.283185307, "-6.2832 A, limit -6.283 A"),
        (5.0, 5.0, "5 A, limit 5 A"),
    ],
)
def test_the_excess_is_seen(value: float, limit: float, text: str) -> None:
    assert beyond(value, limit, "A") == text
