"""A frame as one flat JSON object: keys of the integers or of SI values, checked key by key."""

from __future__ import annotations

import difflib
import json
import math
from collections import Counter
from itertools import groupby
from operator import attrgetter
from typing import Any

from firmware_protocol.codec import FrameCodec, checked_raw
from firmware_protocol.errors import FieldRangeError
from firmware_protocol.fields import Field

_NOT_JSON, _WRONG_KEYS = "not-json", "wrong-keys"


class FrameInputError(ValueError):
    """An object that does not describe a frame; names every key that is wrong.

    Attributes:
        code: What happened, in a word for programs and tests that outlives the sentence.
    """

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code = code


def raws_from_json(codec: FrameCodec[Any], text: str) -> list[int]:
    """Return the integers of a frame, in wire order.

    Each field is given once: under its raw key (integers as on the wire; fields that share a key in
    one list) or under its SI name (rounded to the nearest step; null for "no sensor").

    Raises:
        FrameInputError: Malformed JSON; an unknown, missing or doubled key; a value of a wrong type
            or out of range.
    """
    given = _parsed(text)
    raws: dict[str, Any] = {}
    problems: list[str] = []
    for raw_key, group in groupby(codec.layout.fields, key=attrgetter("raw_key")):
        try:
            raws[raw_key] = _raws(raw_key, list(group), given)
        except (FrameInputError, FieldRangeError) as error:
            problems.append(str(error))
    problems += _unknown_keys(codec, given)
    if problems:
        raise FrameInputError("; ".join(problems), code=_WRONG_KEYS)
    return codec.raws_from_keys(raws)


def _parsed(text: str) -> dict[str, Any]:
    """Return the object, every key given once.

    Python's own parser, because it can say that a key is doubled. Its NaN and Infinity, which are
    not JSON, become texts, so that the check of each key refuses them.
    """
    try:
        given = json.loads(text, object_pairs_hook=_once, parse_constant=str)
    except FrameInputError:
        raise
    except (RecursionError, ValueError) as error:  # or an integer of thousands of digits
        problem = f"not JSON that describes a frame: {error}"
        raise FrameInputError(problem, code=_NOT_JSON) from None
    if not isinstance(given, dict):
        raise FrameInputError("not a JSON object", code="not-an-object")
    return given


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    counts = Counter(key for key, _ in pairs)
    doubled = [repr(key[:60]) for key, count in counts.items() if count > 1]
    if doubled:
        raise FrameInputError(f"given more than once: {', '.join(doubled)}", code="doubled-key")
    return dict(pairs)


def _raws(raw_key: str, fields: list[Field], given: dict[str, Any]) -> int | list[int]:
    """Return the integers of the fields that share a raw key."""
    names = [field.name for field in fields if field.name != raw_key]
    present = [name for name in names if name in given]
    is_list = fields[0].is_per_motor
    if raw_key in given:
        if present:
            problem = f"{raw_key} and {', '.join(present)} say the same: give one"
            raise FrameInputError(problem, code=_WRONG_KEYS)
        count = sum(field.count for field in fields)
        entries = _entries(raw_key, given[raw_key], count if is_list else None, (int,))
        for field, raw in zip((f for f in fields for _ in range(f.count)), entries, strict=True):
            if not field.wire.minimum <= raw <= field.wire.maximum:
                limits = f"the wire carries {field.wire.minimum} to {field.wire.maximum}"
                raise FieldRangeError(raw_key, raw, limits)
    elif names and present == names:
        entries = []
        for field in fields:
            types = (int, float) if field.absent_raw is None else (int, float, type(None))
            expected = field.count if is_list else None
            values = _entries(field.name, given[field.name], expected, types)
            entries += [checked_raw(field, math.nan if v is None else v) for v in values]
    else:
        absent = [name for name in names if name not in present]
        in_si = f" (or {' and '.join(absent)} in SI)" if absent else ""
        raise FrameInputError(f"{raw_key} is missing{in_si}", code=_WRONG_KEYS)
    return entries if is_list else entries[0]


def _entries(key: str, value: Any, count: int | None, types: tuple[type, ...]) -> list[Any]:
    """Return a value as a list of `count` entries of these types; None for a single entry."""
    entries = value if isinstance(value, list) else [value]
    is_right_shape = isinstance(value, list) == bool(count) and len(entries) == (count or 1)
    if is_right_shape and all(type(entry) in types for entry in entries):
        return entries
    noun = "number" if float in types else "integer"
    wanted = f"a list of {count} {noun}s" if count else f"one {noun}"
    shown = json.dumps(value)[:60]
    raise FrameInputError(f"{key} = {shown}: expected {wanted}", code=_WRONG_KEYS)


def _unknown_keys(codec: FrameCodec[Any], given: dict[str, Any]) -> list[str]:
    known = {name for field in codec.layout.fields for name in (field.raw_key, field.name)}
    problems = []
    for key in sorted(given.keys() - known):
        close = difflib.get_close_matches(key, known, n=1)
        hint = f", did you mean {close[0]}?" if close else ""
        problems.append(f"unknown key {key[:60]!r}{hint}")
    return problems
