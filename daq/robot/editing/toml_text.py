"""Values written into a TOML text whose comments, order and spacing stay. Knows no robots.

tomlkit keeps them all but for two things: it would join tables that stand apart (`[[joints]]`,
`[bus]`, `[[joints]]`), so such a text cannot be opened; and it would add a key behind comments that
belong to the next table, so keys are added here.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

import tomlkit
from tomlkit.items import AoT, Array, InlineTable, Item, SingleKey, Table

Path = tuple[str | int, ...]
"""Where a table is, such as ("joints", 2, "drive")."""


class TomlText:
    """A text that is being changed.

    Args:
        text: TOML.
        remark: In place of comments beside values that change, which describe the old ones; None
            to let those stay. What stands beside an array of tables, written in one piece, speaks
            of more than one value and stays.

    Attributes:
        data: What it should say, as `tomllib` would read it.

    Raises:
        ValueError: Tables of an array stand apart.
    """

    def __init__(self, text: str, remark: str | None = None) -> None:
        self.data: Any = tomllib.loads(text)
        # The endings of most lines; a text may have both.
        self._newline = "\r\n" if 2 * text.count("\r\n") > text.count("\n") else "\n"
        text = text.replace("\r\n", "\n")
        if not text.endswith("\n"):
            text += "\n"
        self._document: Any = tomlkit.parse(text)
        self._remark = remark
        if tomlkit.dumps(self._document) != text:
            raise ValueError("tables of an array stand apart")

    @property
    def text(self) -> str:
        """The text as it is now."""
        return tomlkit.dumps(self._document).replace("\n", self._newline)

    def put(self, path: Path, values: Mapping[str, Any]) -> None:
        """Write values into the table at a path, however the text writes it; None removes one."""
        values = {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}
        table, data, beside = self._document, self.data, None
        for depth, step in enumerate(path):
            if isinstance(step, str) and step not in table:
                for name in path[:depth:-1]:
                    values = {str(name): values}
                values = {step: values}
                break
            table, data = table[step], data[step]
            if beside is None and isinstance(table, Array | InlineTable):
                beside = table
        for key, value in values.items():
            if value is None:
                table.pop(key, None)
            elif key in table and data[key] != value:
                table[key] = value
                self._comment(table[key] if beside is None else beside)
        self._add(table, {key: values[key] for key in values if key not in data})
        data |= values
        for key in [key for key in values if values[key] is None]:
            del data[key]

    def _comment(self, item: Item) -> None:
        is_one = not isinstance(item, Array) or not any(isinstance(part, dict) for part in item)
        if self._remark is not None and item.trivia.comment and is_one:
            item.comment(self._remark)

    def _add(self, table: Any, values: Mapping[str, Any]) -> None:
        items = {key: tomlkit.value(_literal(v)) for key, v in values.items() if v is not None}
        if not items or not isinstance(table, Table):
            for key, item in items.items():
                item.trivia.trail = " " if isinstance(table, InlineTable) else "\n"
                table[key] = item
            return
        body = table.value.body
        ends = [
            number
            for number, (name, part) in enumerate(body, start=1)
            if name is not None and (name.is_dotted() or not isinstance(part, AoT | Table))
        ]
        place = max(ends, default=0)
        for key, item in reversed(items.items()):
            item.trivia.indent = body[place - 1][1].trivia.indent if place else ""
            body.insert(place, (SingleKey(key), item))
        # What is put into the body is known to tomlkit only when it is read again.
        self._document = tomlkit.parse(tomlkit.dumps(self._document))


def _literal(value: object) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {_literal(item)}' for key, item in value.items())} }}"
    return tomlkit.item(value).as_string()
