"""How figures, pages and tables write numbers and names, to be read.

Nothing here knows where the words will stand; escaping is up to the caller.
"""

from __future__ import annotations

import math

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_DIGITS_MAX = 8
_ZERO = 1e-300  # below, powers of ten lose their digits


def number_text(value: float | None, digits: int = 4) -> str:
    """Return a number to be read, to so many digits, `2.42×10⁻⁶`; an en dash for none."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0.0 else "−∞"
    if abs(value) < _ZERO:
        return "0"
    exponent = _exponent(value)
    shown = math.floor(math.log10(abs(value))) if exponent == 0 else 0
    text = f"{value / 10.0**exponent:.{max(digits - 1 - shown, 0)}f}"
    return text.replace("-", "−") + _power(exponent)


def interval_text(value: float, low: float | None, high: float | None, unit: str = "") -> str:
    """Return a number with its interval, `2.42 [2.39, 2.45] ×10⁻⁶ N·m`.

    The half width has one digit, two when they begin with 1 to 3: no digit is just noise.
    """
    if not math.isfinite(value):
        return "–"
    tail = f" {unit}" if unit else ""
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return number_text(value) + tail
    half = abs(high - low) / 2.0
    largest = max(abs(value), half)
    exponent = _exponent(largest)
    decimals = 3
    if half > 0.0:
        decimals = exponent - math.floor(math.log10(half / 3.5))
        decimals = min(max(decimals, 0), _DIGITS_MAX)
    value, low, high = (number / 10.0**exponent for number in (value, low, high))
    text = f"{value:.{decimals}f} [{low:.{decimals}f}, {high:.{decimals}f}]".replace("-", "−")
    power = _power(exponent)
    return text + (f" {power}" if power else "") + tail


def fixed_text(value: float | None, decimals: int) -> str:
    """Return a number with fixed decimals, to align in a column; a power where too small for it."""
    if value is None or not (value == 0.0 or 10.0**-decimals <= abs(value) < 1e6):
        return number_text(value, 3)
    return f"{value:.{decimals}f}".replace("-", "−")


def _exponent(value: float) -> int:
    """Power of ten to take out; none where the number is as readable without."""
    if abs(value) < _ZERO or 1e-3 <= abs(value) < 1e5:
        return 0
    return math.floor(math.log10(abs(value)))


def _power(exponent: int) -> str:
    return f"×10{str(exponent).translate(_SUPERSCRIPTS)}" if exponent else ""


def shorten(text: str, length: int) -> str:
    """Return a text that fits: without the middle of a long one or what cannot be printed."""
    clean = "".join(letter if letter.isprintable() else "�" for letter in text)
    if len(clean) <= length:
        return clean
    head = (length - 1) // 2
    return f"{clean[:head]}…{clean[head + 1 - length :]}"
