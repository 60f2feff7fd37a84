"""What there is in foreign files, and which columns might be meant: for messages to people.

Columns that differ in a number only, act_pos_J1 to act_pos_J6, are one thing, written act_pos_J*.
Nothing is decided here: `estimation.array_mapping` takes what it was told or knows by name.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

import numpy as np

from estimation.array_files import ArrayFile

_SHOWN = 40
_NUMBER = re.compile(r"\d+(?=\D*$)")
_HINTS = {
    "t_s": r"time|stamp|clock|sec",
    "q_rad": r"pos|ang|theta|phi|\bq|_q|\bj",
    "tau_nm": r"trq|tor|tau|eff|mom|nm\b|force",
    "iq_a": r"cur|iq|amp|\bi",
}
_COMMANDED = re.compile(r"ref|des|cmd|comm|targ|set|goal|err|lim|max|min|tcp|cart")


def describe(files: Sequence[ArrayFile]) -> str:
    """What there is to choose from, in a sentence."""
    texts = []
    for file in files:
        if not file.has_names:
            texts.append(f"{file.path.name} has columns 1-{len(file.fields)} without names")
            continue
        names = []
        for members in _alike(file).values():
            # The last word is enough if it has the number: act_pos_J1…J6, but q1_rad…q6_rad.
            last = re.split(r"[_.\s]", members[-1])[-1]
            more = f"…{last if _NUMBER.search(last) else members[-1]}" if len(members) > 1 else ""
            shape = " × ".join(map(str, file.fields[members[0]].shape))
            names.append(members[0] + more + ("" if file.is_table else f" ({shape})"))
        more = f", … ({len(names) - _SHOWN} more)" if len(names) > _SHOWN else ""
        texts.append(f"{file.path.name} has {', '.join(names[:_SHOWN])}{more}")
    return "; ".join(texts)


def suggest(files: Sequence[ArrayFile], keys: Sequence[str], joints: int) -> str:
    """The options that would take these quantities, as far as names tell; else an example.

    Args:
        files: Where to look.
        keys: Quantities that were not found, with the first of which an example is made.
        joints: Columns that each has, but time.
    """
    found: dict[str, str] = {}
    for key in keys:
        wanted = 1 if key == "t_s" else joints
        choices = [
            source
            for file in files
            if file.has_names
            for source in _sources(file, wanted)
            if re.search(_HINTS[key], source.lower())
        ]
        # What was measured rather than what was wanted.
        choices.sort(key=lambda source: bool(_COMMANDED.search(source.lower())))
        if choices and choices[0] not in found.values():
            found[key] = choices[0]
    if not found:
        found[keys[0]] = _example(files, 1 if keys[0] == "t_s" else joints)
    return " ".join(f"--map '{key}={source}'" for key, source in found.items())


def _alike(file: ArrayFile) -> dict[str, list[str]]:
    """Names that differ in a number only, by what they have in common."""
    groups: dict[str, list[str]] = {}
    for name in file.fields:
        groups.setdefault(_NUMBER.sub("*", name), []).append(name)
    return groups


def _sources(file: ArrayFile, wanted: int) -> list[str]:
    """What has as many columns, as a mapping names it."""
    sources = []
    for pattern, members in _alike(file).items():
        widths = [file.fields[name].shape[1] for name in members]
        if sum(widths) == wanted and len(members) > 1:
            for each in (pattern, pattern.replace("*", "?")):
                if [name for name in file.fields if fnmatch.fnmatchcase(name, each)] == members:
                    sources.append(each)
                    break
        else:
            sources += [
                name for name, width in zip(members, widths, strict=True) if width == wanted
            ]
    return sources


def _example(files: Sequence[ArrayFile], wanted: int) -> str:
    """Columns by number, or a name where one is due; the first is passed over if it is time."""
    file = files[0]
    if file.has_names and (not file.is_table or wanted == 1):
        return next(iter(_sources(file, wanted)), "NAME")
    if file.has_names:
        return next((each for each in _sources(file, wanted) if "*" in each), "NAME*")
    column = next(iter(file.fields.values()))[:, 0]
    is_time = len(file.fields) != wanted and bool((np.diff(column) > 0.0).all())
    first = 2 if is_time and wanted > 1 else 1
    return f"{file.path.name}:{first}" + (f"-{first + wanted - 1}" if wanted > 1 else "")
