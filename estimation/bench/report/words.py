"""How figure, page and tables of the friction bench write numbers and names, to be read.

Nothing here knows where the words will stand; escaping is up to the caller.
"""

from __future__ import annotations

from estimation.bench.result import EstimatedQuantity
from estimation.reporting.numbers import interval_text, number_text, shorten

__all__ = ["as_percent", "date_text", "model_title", "number_text", "quantity_text", "shorten"]

_MODEL_TITLES = {
    "coulomb_viscous": "Coulomb + viscous",
    "asymmetric": "asymmetric Coulomb + viscous",
    "stribeck": "Stribeck",
}


def model_title(name: str) -> str:
    """Return what a friction model is called in words."""
    return _MODEL_TITLES.get(name, name.replace("_", " ")) or "none"


def quantity_text(quantity: EstimatedQuantity | None, unit: str = "") -> str:
    """Return an estimate with its interval, `2.42 [2.39, 2.45] ×10⁻⁶ N·m`; an en dash for none."""
    if quantity is None:
        return "–"
    return interval_text(quantity.value, quantity.low, quantity.high, unit)


def as_percent(quantity: EstimatedQuantity | None) -> EstimatedQuantity | None:
    """Return a relative quantity in percent.

    Args:
        quantity: Which.

    Returns:
        A hundred times as much of everything that is known.
    """
    if quantity is None:
        return None
    numbers = (quantity.value, quantity.low, quantity.high, quantity.truth)
    _, low, high, truth = (None if number is None else 100.0 * number for number in numbers)
    return EstimatedQuantity(value=100.0 * quantity.value, low=low, high=high, truth=truth)


def date_text(recorded_utc: str) -> str:
    """When a recording was made; a virtual clock begins with the Unix epoch: not a date."""
    return "virtual time" if recorded_utc.startswith("1970-01-01T") else recorded_utc
