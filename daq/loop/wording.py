"""Words for a value beyond its limit, the same in every message of the loop."""

from __future__ import annotations


def beyond(value: float, limit: float, unit: str) -> str:
    """Return a value and the limit that it exceeds, with digits enough to see that it does."""
    limit_text = f"{limit:.4g}"
    size = limit_text.lstrip("-")
    texts = (f"{value:.{digits}g}" for digits in (4, 6, 9, 17))
    value_text = next(text for text in texts if text.lstrip("-") != size or value == limit)
    return f"{value_text} {unit}, limit {limit_text} {unit}"
