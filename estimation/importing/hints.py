"""Suggestions for messages: what foreign files contain, and which columns may be the wanted ones.

Columns that differ in a number only, act_pos_J1 to act_pos_J6, are one thing, written act_pos_J*.
Nothing is decided here: `estimation.importing.mapping` uses options and known names.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

import numpy as np

from estimation.importing.files import ArrayFile, list_left_out
from estimation.importing.names import meaning_of
from estimation.importing.time_stamps import REPEATED_MAX
from estimation.types import FloatArray

_SHOWN = 40
_NUMBER = re.compile(r"\d+(?=\D*$)")
_HINTS = {
    "t_s": r"time|stamp|clock|sec",
    "q_rad": r"pos|ang|theta|phi|\bq|_q|\bj",
    "dq_rad_s": r"vel|speed|omega|qd|dq|q_?dot|rad_s|rpm",
    "tau_nm": r"trq|(?<!mo)tor|tau|eff|mom|nm\b|force",
    "iq_a": r"cur|iq|amp|\bi",
}
_OTHERS = {
    "q_rad": r"vel|speed|omega|qdd?(?![a-z])|d?dq|dot|rad_s|rpm|acc|trq|torq|tau|eff|mom|cur",
    "dq_rad_s": r"pos|acc|qdd|ddq|trq|torq|tau|eff|mom|cur",
}
"""What a name says that is not of this quantity, although it may look like it."""
_COMMANDED = re.compile(r"ref|des|cmd|comm|targ|set|goal|err|lim|max|min|tcp|cart")


def list_columns(files: Sequence[ArrayFile]) -> str:
    """Return what there is to choose from, in a sentence."""
    texts = []
    for file in files:
        if not file.has_names:
            texts.append(f"{file.name} has columns 1-{len(file.fields)} without names")
            continue
        names = []
        for members in _alike(file).values():
            # The last word is enough if it has the number: act_pos_J1…J6, but q1_rad…q6_rad.
            last = re.split(r"[_.\s]", members[-1])[-1]
            more = f"…{last if _NUMBER.search(last) else members[-1]}" if len(members) > 1 else ""
            shape = " × ".join(map(str, file.fields[members[0]].shape))
            names.append(members[0] + more + ("" if file.is_table else f" ({shape})"))
        more = f", … ({len(names) - _SHOWN} more)" if len(names) > _SHOWN else ""
        texts.append(f"{file.name} has {', '.join(names[:_SHOWN])}{more}")
        texts += list_left_out(file.left_out)
    return "; ".join(texts)


def suggest_map(
    files: Sequence[ArrayFile], keys: Sequence[str], joints: int, *, has_example: bool = True
) -> str:
    """Return the options that would take these quantities, by their names; else an example.

    Args:
        files: Where to look.
        keys: Quantities that were not found, with the first of which an example is made; for
            torques, currents will do.
        joints: Columns that each has, but time.
        has_example: Whether to make one.
    """
    found: dict[str, str] = {}
    for key in keys:
        choices = _choices(files, key, joints)
        if key == "tau_nm":
            choices += [(each, "iq_a") for each, _ in _choices(files, "iq_a", joints)]
        # What was measured rather than what was wanted: a controller's torque is its own model's.
        choices.sort(key=lambda choice: bool(_COMMANDED.search(choice[0].lower())))
        is_wanted = bool(choices) and bool(_COMMANDED.search(choices[0][0].lower()))
        if (
            choices
            and choices[0][0] not in found.values()
            and not (is_wanted and key == "dq_rad_s")
        ):
            found[choices[0][1]] = choices[0][0]
    if not found and has_example:
        found[keys[0]] = _example(files, keys[0], joints)
    return " ".join(f"--map '{key}={source}'" for key, source in found.items())


def _choices(files: Sequence[ArrayFile], key: str, joints: int) -> list[tuple[str, str]]:
    """Return sources whose names may be those of a quantity, and the quantity."""
    choices = []
    for file in files:
        for source in (
            _sources(file, 1 if key == "t_s" else joints, _HINTS[key]) if file.has_names else []
        ):
            name = source.lower()
            is_other = key in _OTHERS and re.search(_OTHERS[key], name)
            is_time = key != "t_s" or _rises(file.fields[source][:, 0])
            if not is_other and is_time:
                choices.append((source, key))
    return choices


def _is_another(name: str, key: str) -> bool:
    """Whether a name is usual for another quantity."""
    meaning = meaning_of(name, ())
    return meaning is not None and meaning.key != key


def _rises(values: FloatArray) -> bool:
    """Whether a column may be time: seconds without their fractions are not."""
    steps = np.diff(values[np.isfinite(values)])
    return (
        bool((steps >= 0.0).all() and np.mean(steps == 0.0) <= REPEATED_MAX)
        if len(steps)
        else False
    )


def _alike(file: ArrayFile) -> dict[str, list[str]]:
    """Names that differ in a number only, by what they have in common."""
    groups: dict[str, list[str]] = {}
    for name in file.fields:
        groups.setdefault(_NUMBER.sub("*", name), []).append(name)
    return groups


def _sources(file: ArrayFile, wanted: int, hint: str = "") -> list[str]:
    """Return what has as many columns and a name that fits, as a mapping names it."""
    sources = []
    for pattern, members in _alike(file).items():
        if not re.search(hint, members[0].lower()):
            continue
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


def _example(files: Sequence[ArrayFile], key: str, joints: int) -> str:
    """Return columns by number, or a name where needed; the first is passed over if it is time."""
    file = files[0]
    wanted = 1 if key == "t_s" else joints
    if file.has_names and (not file.is_table or wanted == 1):
        sources = _sources(file, wanted)
        if key == "t_s":
            sources = [each for each in sources if _rises(file.fields[each][:, 0])]
        else:
            sources = [each for each in sources if not _is_another(each, key)]
        return next(iter(sources), "NAME")
    if file.has_names:
        return next((each for each in _sources(file, wanted) if "*" in each), "NAME*")
    column = next(iter(file.fields.values()))[:, 0]
    is_time = len(file.fields) != wanted and bool((np.diff(column) > 0.0).all())
    first = 2 if is_time and wanted > 1 else 1
    return f"{file.name}:{first}" + (f"-{first + wanted - 1}" if wanted > 1 else "")
