"""Reads plain data, as `tomllib` returns it, into msgspec Structs and collects every mistake.

`msgspec.convert` stops at the first mistake; here only single values go through it. What cannot be
read is replaced by an `Unreadable`, so that checks of the rest can still run. Knows no robots.
"""

from __future__ import annotations

import difflib
import functools
import json
import math
import re
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, NoReturn, TypeVar, get_args, get_origin

import msgspec

from daq.errors import DaqError

StructType = TypeVar("StructType", bound=msgspec.Struct)


class Mistake(NamedTuple):
    """One mistake: where it is, what is there and what should be.

    Attributes:
        path: TOML path, such as `joints[2].drive.gear_reduction`.
        found: The value, or what is wrong with it.
        expected: What belongs there.
    """

    path: str
    found: str
    expected: str

    def __str__(self) -> str:
        return f"{self.path}: {self.found}, expected {self.expected}"


class UnreadableError(DaqError):
    """A check touched a value that could not be read; the mistake itself is already reported."""


class Unreadable:
    """Stands where a value could not be read; any use of it raises `UnreadableError`."""

    def _refuse(self, *_: object) -> NoReturn:
        raise UnreadableError

    __getattr__ = __getitem__ = __contains__ = __iter__ = __len__ = __bool__ = _refuse
    __hash__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __str__ = __format__ = _refuse
    __float__ = __abs__ = __neg__ = __add__ = __radd__ = __sub__ = __rsub__ = _refuse
    __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse


def read_struct(
    struct: type[StructType], data: Mapping[str, object]
) -> tuple[StructType, list[Mistake]]:
    """Read a table, as `tomllib` returns it, into a Struct; return it and every mistake.

    Fields may be Structs, tuples, dicts and single values. With mistakes, the values concerned are
    `Unreadable`.
    """
    problems: list[Mistake] = []
    return _read_table(struct, data, "", problems), problems


def show(value: object) -> str:
    """Show a value as in a message: short, on one line, only its kind when nested."""
    match value:
        case dict():
            return "a table"
        case list() | tuple():
            return f"an array of {len(value)}"
        case bool():
            return str(value).lower()
        case str():
            return _shortened(json.dumps(value))
        case int() if value.bit_length() > 128:
            return f"an integer of {value.bit_length()} bits"
        case _:
            return _shortened(str(value))


def join(path: str, key: str) -> str:
    """Return the path of a key inside the table at `path`."""
    shown = key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _shortened(json.dumps(key))
    return f"{path}.{shown}" if path else shown


def suggest(word: str, known: list[str]) -> str | None:
    """Return the known word that `word` was most likely meant to be, if any is close."""
    return next(iter(difflib.get_close_matches(word[:100], known, n=1)), None)


def describe(kind: Any) -> str:
    """Return what a field accepts, in words."""
    kind = _without_none(kind)
    if get_origin(kind) is Annotated:
        base, meta = get_args(kind)
        return meta.description or _with_range(describe(base), meta)
    if get_origin(kind) is Literal:
        return " or ".join(show(option) for option in get_args(kind))
    if get_origin(kind) is dict:
        return f"a table of names, each with {describe(get_args(kind)[1])}"
    if get_origin(kind) is tuple:
        element, *rest = get_args(kind)
        length = "" if Ellipsis in rest else f" of {1 + len(rest)}"
        return f"an array{length}, each {describe(element)}"
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        required = [name for name, field in _fields(kind).items() if field.required]
        return f"a table with {', '.join(required)}"
    words = {float: "a number", int: "an integer", str: "a text", bool: "true or false"}
    return words[kind]


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _read(kind: Any, value: object, path: str, problems: list[Mistake]) -> Any:
    kind = _without_none(kind)
    reader: Callable[[Any, Any, str, list[Mistake]], Any] = _read_single
    needed: type = object
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        reader, needed = _read_table, dict
    elif get_origin(kind) is dict:
        reader, needed = _read_named, dict
    elif get_origin(kind) is tuple:
        reader, needed = _read_array, list
    if not isinstance(value, needed):
        problems.append(Mistake(path, show(value), describe(kind)))
        return Unreadable()
    return reader(kind, value, path, problems)


@functools.cache
def _fields(struct: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    return {field.name: field for field in msgspec.structs.fields(struct)}


def _read_table(
    struct: type[StructType], table: Mapping[str, object], path: str, problems: list[Mistake]
) -> StructType:
    fields = _fields(struct)
    absent = [name for name in fields if name not in table]
    values: dict[str, Any] = {}
    for key in table:
        if key in fields:
            values[key] = _read(fields[key].type, table[key], join(path, key), problems)
            continue
        found = f"unknown key ({show(table[key])})"
        meant = suggest(key, absent)
        if meant is None:
            expected = f"one of {', '.join(absent)}" if absent else "no further key"
        else:
            # A misspelt key is one mistake, not an unknown key and a missing one.
            expected = meant
            absent.remove(meant)
            values[meant] = Unreadable()
        problems.append(Mistake(join(path, key), found, expected))
    for name in absent:
        if fields[name].required:
            problems.append(Mistake(join(path, name), "missing", describe(fields[name].type)))
            values[name] = Unreadable()
    return struct(**values)


def _read_named(
    kind: Any, table: Mapping[str, object], path: str, problems: list[Mistake]
) -> dict[str, Any]:
    key_kind, value_kind = get_args(kind)
    read: dict[str, Any] = {}
    for key, value in table.items():
        _read_single(key_kind, key, join(path, key), problems)
        read[key] = _read(value_kind, value, join(path, key), problems)
    return read


def _read_array(kind: Any, array: list[object], path: str, problems: list[Mistake]) -> Any:
    kinds = get_args(kind)
    if kinds[-1] is Ellipsis:
        kinds = (kinds[0],) * len(array)
    if len(kinds) != len(array):
        problems.append(Mistake(path, show(array), describe(kind)))
        return Unreadable()
    return tuple(
        _read(element_kind, element, f"{path}[{index}]", problems)
        for index, (element_kind, element) in enumerate(zip(kinds, array, strict=True))
    )


def _read_single(kind: Any, value: object, path: str, problems: list[Mistake]) -> Any:
    try:
        converted = msgspec.convert(value, kind)
    except msgspec.ValidationError:
        problems.append(Mistake(path, show(value), describe(kind)))
        return Unreadable()
    if isinstance(converted, float) and not math.isfinite(converted):
        problems.append(Mistake(path, show(value), "a finite number"))
        return Unreadable()
    return converted


def _without_none(kind: Any) -> Any:
    """`X` for `X | None`: TOML has no null, an optional key is simply left out."""
    if NoneType not in get_args(kind):
        return kind
    (only,) = (option for option in get_args(kind) if option is not NoneType)
    return only


def _with_range(noun: str, meta: msgspec.Meta) -> str:
    if meta.ge is not None and meta.ge == meta.le:
        return f"{meta.ge}"
    bounds = {">": meta.gt, ">=": meta.ge, "<": meta.lt, "<=": meta.le}
    limits = [f"{sign} {bound}" for sign, bound in bounds.items() if bound is not None]
    return " ".join([noun, " and ".join(limits)]).rstrip()
