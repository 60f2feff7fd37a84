"""Edits of a robot file's tables, for tests of what is wrong with the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Edit = Callable[[dict[str, Any]], object]


def put(path: str, value: object) -> Edit:
    """An edit that puts a value at a path such as `joints.0.drive.motor`."""

    def edit(data: Any) -> None:
        *parents, last = [int(key) if key.isdigit() else key for key in path.split(".")]
        for key in parents:
            data = data[key]
        data[last] = value

    return edit
