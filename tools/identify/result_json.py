"""The result of an identification as one JSON object."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from estimation.identification.result import Identification


def facts_of(result: Identification) -> dict[str, Any]:
    """Return everything; infinite numbers, which JSON does not know, as null."""
    facts: dict[str, Any] = msgspec.to_builtins(result)
    facts["methods"] = [_with_headline(row) for row in facts["methods"]]
    return {key: _finite(value) for key, value in facts.items()}


def _with_headline(row: dict[str, Any]) -> dict[str, Any]:
    """Add the errors that are compared, over rows in which joints move, before the details."""
    headline: dict[str, Any] = {"name": row["name"], "summary": row["summary"]}
    for data in ("identification", "validation"):
        errors = row[data]
        headline[f"{data}_percent"] = None if errors is None else errors["moving"]
        headline[f"{data}_percent_per_joint"] = None if errors is None else errors["per_joint"]
    return headline | row


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
