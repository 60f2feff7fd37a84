"""TOML text cut into statements, so that some of them can change and the rest stays as it is.

Only statements that change pass through tomlkit, one at a time: of a whole document it would join
tables that stand apart (`[[joints]]`, `[bus]`, `[[joints]]`). Knows no robots.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tomlkit
from tomlkit.items import InlineTable

Path = tuple[str | int, ...]
"""Where a table is, such as ("joints", 2, "drive")."""

# Strings and comments hide brackets and line breaks; of the rest only those matter.
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"""+'
    r"|'''.*?'''+"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*"
    r"|[\[\]{}\n]",
    re.DOTALL,
)


class Statement(NamedTuple):
    """A piece of the text up to its line break: a header, a key with its value, or neither.

    Attributes:
        text: As it stands, line break included.
        table: The table that it is in, or opens.
        is_header: Whether it opens a table.
        is_filler: Whether it is blank or a comment.
    """

    text: str
    table: Path
    is_header: bool
    is_filler: bool

    def rest_of(self, path: Path) -> Path | None:
        """Return what is left of a path below its table; None when the path is elsewhere."""
        length = len(self.table)
        return path[length:] if path[:length] == self.table else None


def _pieces(text: str) -> Iterator[str]:
    start = depth = 0
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "[" | "{":
                depth += 1
            case "]" | "}":
                depth -= 1
            case "\n" if depth == 0:
                yield text[start : token.end()]
                start = token.end()
    if start < len(text):
        yield text[start:]


def statements_of(text: str) -> list[Statement]:
    """Cut a text into its statements."""
    statements = []
    table: Path = ()
    elements: dict[str, int] = {}
    for piece in _pieces(text):
        bare = piece.lstrip()
        is_header = bare.startswith("[")
        if is_header:
            first, *others = _names(tomllib.loads(piece))
            if bare.startswith("[["):
                elements[first] = elements.get(first, -1) + 1
            table = (first, elements[first], *others) if first in elements else (first, *others)
        is_filler = not bare or bare.startswith("#")
        statements.append(Statement(piece, table, is_header, is_filler))
    return statements


def _names(header: Any) -> Iterator[str]:
    """Yield the names in a header, which reads as tables inside each other."""
    while header:
        if isinstance(header, list):
            (header,) = header
            continue
        ((name, header),) = header.items()
        yield name


def joined(statements: Sequence[Statement]) -> str:
    """Join the statements to the text again."""
    return "".join(statement.text for statement in statements)


def _reach(table: Any, path: Path) -> Any:
    """Return what is at a path below a table; None when there is nothing."""
    for step in path:
        if isinstance(step, int):
            table = table[step] if isinstance(table, list) and step < len(table) else None
        else:
            table = table.get(step) if isinstance(table, dict) else None
    return table


def without(statements: Sequence[Statement], paths: Sequence[Path]) -> list[Statement]:
    """Drop what is at these paths, with the comments in front of it."""
    kept: list[Statement] = []
    filler: list[Statement] = []
    is_dropped = False
    for original in statements:
        statement = original
        if statement.is_filler:
            filler.append(statement)
            continue
        is_dropped = any(statement.table[: len(path)] == path for path in paths)
        if not is_dropped and not statement.is_header:
            document = tomlkit.parse(statement.text)
            # From the back, so that the elements of an array keep their numbers.
            for path in reversed(paths):
                _delete(document, statement.rest_of(path))
            if document.unwrap() != tomllib.loads(statement.text):
                statement = statement._replace(text=tomlkit.dumps(document))
                is_dropped = not tomllib.loads(statement.text)
        if not is_dropped:
            kept += [*filler, statement]
        filler = []
    return kept if is_dropped else [*kept, *filler]


def _delete(document: Any, path: Path | None) -> None:
    if path and _reach(document, path) is not None:
        del _reach(document, path[:-1])[path[-1]]


def put(
    statements: Sequence[Statement], path: Path, values: Mapping[str, object], newline: str
) -> list[Statement]:
    """Write values into the table at a path, however the file writes that table."""
    result = list(statements)
    missing = dict(values)
    last: tuple[int, Path] | None = None
    is_inline = False
    for number, statement in enumerate(statements):
        rest = statement.rest_of(path)
        if rest is None or statement.is_filler:
            continue
        document = tomlkit.parse("" if statement.is_header else statement.text)
        table = _reach(document, rest)
        if table is None:
            continue
        last = (number, rest)
        is_changed = False
        for key in [key for key in missing if key in table]:
            value = missing.pop(key)
            if table[key] != value:
                table[key] = value
                is_changed = True
        is_inline = any(
            isinstance(_reach(document, rest[:depth]), InlineTable)
            for depth in range(1, len(rest) + 1)
        )
        if is_inline and missing:
            _put_inline(document, rest, missing)
            is_changed = True
        if is_changed:
            result[number] = statement._replace(text=tomlkit.dumps(document))
    if last is None:
        around = path[:-1]
        beside = [number for number, other in enumerate(statements) if other.table[:-1] == around]
        if not beside or any(statement.table == around for statement in statements):
            return put(statements, around, {str(path[-1]): values}, newline)
        # Only headers like [joints.control.velocity] speak of the table around it, which then
        # cannot be written as a key anywhere else: another header beside them.
        names = ".".join(step for step in path if isinstance(step, str))
        lines = [f"[{names}]", *(f"{key} = {_literal(value)}" for key, value in values.items())]
        text = joined(statements[: beside[-1] + 1]).rstrip() + newline * 2
        text += "".join(line + newline for line in lines)
        tail = joined(statements[beside[-1] + 1 :])
        return statements_of(text + (newline + tail if tail else ""))
    if missing and not is_inline:
        number, rest = last
        before = result[number]
        indent = before.text[: len(before.text) - len(before.text.lstrip())]
        lines = [
            f"{indent}{'.'.join(map(str, (*rest, key)))} = {_literal(value)}{newline}"
            for key, value in missing.items()
        ]
        text = before.text if before.text.endswith("\n") else before.text + newline
        result[number] = before._replace(text=text + "".join(lines))
    return result


def _put_inline(document: Any, path: Path, values: Mapping[str, object]) -> None:
    """Add values below an inline table, which is written anew: tomlkit would do it untidily."""
    depth = len(path)
    while not isinstance(_reach(document, path[:depth]), InlineTable):
        depth -= 1
    data = _reach(document, path[:depth]).unwrap()
    _reach(data, path[depth:]).update(values)
    _reach(document, path[: depth - 1])[path[depth - 1]] = tomlkit.value(_literal(data))


def _literal(value: object) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {_literal(item)}' for key, item in value.items())} }}"
    return tomlkit.item(value).as_string()
