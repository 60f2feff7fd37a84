"""What texts name is there: modules and files, in documents, docstrings and comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from rooms import PACKAGES, PROJECT

NAME = re.compile(rf"`((?:{'|'.join(PACKAGES)})(?:\.\w+)+)`")
_FOLDERS = "|".join((*PACKAGES, "tests", "docs"))
FILE = re.compile(rf"(?<![\w/.])((?:{_FOLDERS})/[\w/]+\.(?:py|md|toml|c|h))\b")


def texts() -> Iterator[Path]:
    for folder in (*PACKAGES, "tests", "docs"):
        for path in (PROJECT / folder).rglob("*"):
            if path.suffix in {".py", ".md", ".toml"}:
                yield path
    yield from (PROJECT / name for name in ("README.md", "Makefile", "pyproject.toml"))


def is_there(name: str) -> bool:
    """Whether a dotted name is that of a module, or of something in a module."""
    path, *parts = PROJECT, *name.split(".")
    while parts and (path / parts[0]).is_dir():
        path /= parts.pop(0)
    if parts and (path / f"{parts[0]}.py").is_file():
        path /= f"{parts.pop(0)}.py"
    source = (path if path.is_file() else path / "__init__.py").read_text()
    return all(re.search(rf"\b{part}\b", source) for part in parts)


def test_what_texts_name_is_there() -> None:
    missing = []
    for path in texts():
        name, text = path.relative_to(PROJECT), path.read_text()
        missing += [f"{name}: {found}" for found in NAME.findall(text) if not is_there(found)]
        missing += [
            f"{name}: {found}" for found in FILE.findall(text) if not (PROJECT / found).is_file()
        ]
    assert missing == []
