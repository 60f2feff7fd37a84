"""Replaces comments beside values of a robot file that change, as they describe the old value.

Text in, text out; knows nothing of what the values mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import tomlkit
from tomlkit.items import InlineTable

from daq.robot.editing.toml_text import Path, Statement, joined, statements_of


def with_remarks(old: str, new: str, remark: str) -> str:
    """Return the new text with a remark in place of each comment beside a changed value.

    Only values inside tables are looked at: what stands beside an array of all joints, written in
    one piece, speaks of more than one value. Where there was no comment, there is none.

    Args:
        old: A robot file.
        new: The same with other values.
        remark: Without `#`.
    """
    before, after = statements_of(old), statements_of(new)
    same = set(before) & set(after)
    gone = {_leaf(each)[0] for each in before if _is_value(each) and each not in same}
    return joined([each if each in same else _with_remark(each, gone, remark) for each in after])


def _is_value(statement: Statement) -> bool:
    return bool(statement.table) and not statement.is_header and not statement.is_filler


def _with_remark(statement: Statement, gone: Set[Path], remark: str) -> Statement:
    if not _is_value(statement):
        return statement
    place, document, value = _leaf(statement)
    if place not in gone or not value.trivia.comment:
        return statement
    value.trivia.comment = f"# {remark}"
    return statement._replace(text=tomlkit.dumps(document))


def _leaf(statement: Statement) -> tuple[Path, Any, Any]:
    """Return where a statement's value is, the statement as a document, and the value."""
    document: Any = tomlkit.parse(statement.text)
    path, value = statement.table, document
    while isinstance(value, Mapping) and not isinstance(value, InlineTable):
        ((name, value),) = value.items()
        path = (*path, str(name))
    return path, document, value
