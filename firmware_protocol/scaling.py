"""Scaling of values to the integers on the wire, a run of like fields at a time.

This is the loop's path and therefore short: what it refuses, the codec looks at once more, field by
field, to say what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, groupby
from operator import attrgetter, call, truediv
from typing import Any

from firmware_protocol.fields import Field

Run = tuple[slice, Callable[[Any], Iterable[int]]]
"""A slice of a frame's values, and how it becomes integers."""
_TWO = frozenset({2})


def scaling_runs(fields: Sequence[Field]) -> list[Run]:
    """Return the fields of a frame in runs of neighbours that are converted alike."""
    result: list[Run] = []
    start = 0
    for (is_integer, is_shifted, are_pairs), group in groupby(
        fields, key=attrgetter("is_integer", "is_shifted", "is_per_motor")
    ):
        run = list(group)
        flat = [field for field in run for _ in range(field.count)]
        to_raws: Callable[[Any], Iterable[int]]
        flatten: Callable[[Any], Any] = _flatten_pairs if are_pairs else tuple
        if is_shifted:
            to_raws = _shifting(flat, flatten)
        elif is_integer:
            to_raws = flatten
        else:
            to_raws = _scaling(flat, flatten)
        result.append((slice(start, start + len(run)), to_raws))
        start += len(run)
    return result


def _flatten_pairs(part: Any) -> Iterable[Any]:
    # Three values and one are four as well: one motor would get the other's.
    if not _TWO.issuperset(map(len, part)):
        raise ValueError(part)
    return chain.from_iterable(part)


def _scaling(
    flat: Sequence[Field], flatten: Callable[[Any], Any]
) -> Callable[[Any], Iterable[int]]:
    lsb = tuple(field.lsb for field in flat)
    # `round` would look this method up anew for every value. What is not a float (NumPy's float32)
    # ends on the slow path, which gives the same.
    return lambda part: map(float.__round__, map(truediv, flatten(part), lsb))


def _shifting(
    flat: Sequence[Field], flatten: Callable[[Any], Any]
) -> Callable[[Any], Iterable[int]]:
    raws_of = tuple(field.raw_of for field in flat)
    return lambda part: map(call, raws_of, flatten(part))
