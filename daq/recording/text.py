"""Text from files, names and people, made harmless wherever it is stored or shown."""

from __future__ import annotations

import os


def plain(text: str | os.PathLike[str]) -> str:
    r"""Return a text on one line that is harmless on a terminal and can be stored as UTF-8.

    What cannot be printed is written as Python writes it, as \x1b or, for a file's name that is not
    UTF-8, as \udcff; other blanks are blanks.
    """
    text = os.fspath(text)
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else " " if each.isspace() else ascii(each)[1:-1]
        for each in text
    )
