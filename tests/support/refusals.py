"""Errors that are expected by type, code and values, not by words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from daq.errors import DaqError
from estimation.errors import EstimationError

E = TypeVar("E", bound=DaqError | EstimationError)


@contextmanager
def refused(kind: type[E], code: str, *values: object) -> Iterator[pytest.ExceptionInfo[E]]:
    """Expect an error.

    Args:
        kind: Its type.
        code: Its code.
        values: Names and numbers that its sentence must show.
    """
    with pytest.raises(kind) as caught:
        yield caught
    assert caught.value.code == code, caught.value
    for value in values:
        assert str(value) in str(caught.value)
