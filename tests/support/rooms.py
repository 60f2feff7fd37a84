"""The table of every room: a sentence per file, taken from the files themselves.

`python tests/support/rooms.py` (part of `make docs`) writes them into the README of each folder;
what stands outside the two markers is written by hand. A test fails when a table is stale.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).parents[2]
PACKAGES = ("firmware_protocol", "daq", "estimation", "hw_mocks", "tools")
BEGIN, END = "<!-- files: made by `make docs` -->", "<!-- end of files -->"


def rooms() -> Iterator[Path]:
    """Yield every folder of the five packages that holds modules."""
    for package in PACKAGES:
        for init in sorted((PROJECT / package).rglob("__init__.py")):
            yield init.parent


def modules(room: Path) -> list[Path]:
    """Return the modules of a room, without its front."""
    return sorted(path for path in room.glob("*.py") if path.name != "__init__.py")


def sentence(module: Path) -> str:
    """Return the first line of a module's docstring."""
    return (ast.get_docstring(ast.parse(module.read_text())) or "").partition("\n")[0]


def table(room: Path) -> str:
    """Return a room's folders and files, one sentence each."""
    inner = [path for path in sorted(room.iterdir()) if (path / "__init__.py").is_file()]
    rows = [
        *((f"[`{path.name}/`]({path.name}/README.md)", path / "__init__.py") for path in inner),
        *((f"`{path.name}`", path) for path in modules(room)),
    ]
    lines = ["| | |", "|---|---|", *(f"| {name} | {sentence(path)} |" for name, path in rows)]
    return "\n".join([BEGIN, *lines, END])


def readme(room: Path) -> str:
    """Return what a room's README should be: the table of today, and the rest as it stands."""
    path = room / "README.md"
    if not path.is_file():
        title = str(room.relative_to(PROJECT))
        return f"# {title}\n\n{sentence(room / '__init__.py')}\n\n{table(room)}\n"
    before, _, rest = path.read_text().partition(BEGIN)
    return f"{before}{table(room)}{rest.partition(END)[2]}"


if __name__ == "__main__":
    for folder in rooms():
        (folder / "README.md").write_text(readme(folder))
