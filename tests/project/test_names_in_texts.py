"""Modules, and files of the project, that a text names are there: documents, docstrings, comments."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest
from rooms import PACKAGES, PROJECT

NAME = re.compile(rf"`((?:{'|'.join(PACKAGES)})(?:\.\w+)+)`")
FILE = re.compile(rf"(?<![\w/.])((?:{'|'.join((*PACKAGES, 'tests', 'docs'))})/[\w/]+\.(?:py|md|toml|c|h))\b")
OF_OLD = {"CHANGELOG.md"}
"""What tells of earlier versions, whose files were elsewhere."""


def texts() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.md", "*.toml", "Makefile"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [name for name in listed.stdout.split("\n") if name and name not in OF_OLD]


def is_there(name: str) -> bool:
    """Whether a dotted name is a module's, or of something in a module."""
    parent, _, last = name.rpartition(".")
    path = PROJECT / parent.replace(".", "/")
    if (path / last).is_dir() or (path / f"{last}.py").is_file():
        return True
    source = path.with_suffix(".py") if path.with_suffix(".py").is_file() else path / "__init__.py"
    return source.is_file() and re.search(rf"\b{last}\b", source.read_text()) is not None


def test_what_texts_name_is_there() -> None:
    missing = []
    for name in texts():
        if not (PROJECT / name).is_file():
            continue
        text = (PROJECT / name).read_text()
        missing += [f"{name}: {found}" for found in NAME.findall(text) if not is_there(found)]
        missing += [
            f"{name}: {found}" for found in FILE.findall(text) if not (PROJECT / found).is_file()
        ]
    assert missing == []
