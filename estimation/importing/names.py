"""What columns are usually called: which quantity, of which joint, in what unit.

A name is read in words, whatever stands between them: `tau_J1`, `q (3)`, `elbow_pos`,
`position/elbow`, `/joint_states/elbow/position`. What precedes a quantity with a / or a dot is a
place in a tree and passed over, unless it says that the values were wanted rather than measured.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from estimation.errors import DatasetError

_NAMES = {
    "t_s": "t time timestamp timestamps seconds",
    "q_rad": "q pos position positions q_meas q_measured qm joint_pos joint_position angle angles "
    "theta joint_positions actual_q",
    "dq_rad_s": "dq qd qdot q_dot dq_meas vel velocity velocities speed omega joint_vel "
    "joint_velocity joint_velocities dqm actual_qd",
    "tau_nm": "tau torque torques effort efforts eff trq tau_meas tau_measured joint_torque "
    "joint_torques joint_effort joint_efforts taum tau_j",
    "iq_a": "iq i current currents curr cur motor_current motor_currents actual_current",
    "q_ref_rad": "q_ref qref q_des q_desired q_cmd pos_ref position_ref ref_position "
    "reference_position pos_des q_d target_q",
}
"""Among them what UR's RTDE (actual_q_0, …) and libfranka (q1, tau_J1, q_d1, …) write."""
_QUANTITY_OF = {name: key for key, names in _NAMES.items() for name in names.split()}
_UNIT_SUFFIXES = {
    "rad": "rad",
    "deg": "deg",
    "rad_s": "rad/s",
    "deg_s": "deg/s",
    "rpm": "rpm",
    "nm": "Nm",
    "mnm": "mNm",
    "a": "A",
    "ma": "mA",
    "s": "s",
    "ms": "ms",
    "us": "us",
    "ns": "ns",
}
_WANTED = re.compile(
    r"ref(erence)?|des(ired)?|cmd|command(s|ed)?|targets?|set(points?)?|goal|err(ors?)?"
)
_NUMBERED = re.compile(r"^(?P<name>[a-z_]*?[a-z])_?(?P<number>\d{0,3})$")
_BRACKET = re.compile(r"^(.*?)[\s_]*[\[(]([^\])]*)[\])]$")
_WORD = re.compile(r"[^\W_]+")
_CLOCK = re.compile(r"(n|nano)?(sec|secs|second|seconds)")


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a name says.

    Attributes:
        key: The quantity.
        style: The name without the joint: columns that belong together have it in common.
        place: Number of the joint, from 0 where it is named, as written where it is a number.
        is_joint: Whether a joint of the robot is named.
        unit: Where the name has one.
    """

    key: str
    style: str
    place: int
    is_joint: bool
    unit: str | None


def meaning_of(name: str, joints: Sequence[str]) -> Meaning | None:
    """Return what a column is by its name; None for another thing."""
    text, unit = name.strip().lower(), None
    bracket = _BRACKET.match(text)
    if bracket and not bracket[2].isdigit():
        text, unit = bracket[1], _UNIT_SUFFIXES.get(bracket[2].replace("/", "_"))
    branches = [_WORD.findall(part) for part in re.split(r"[/.]", text)]
    words = [word for branch in branches for word in branch]
    depth = [level for level, branch in enumerate(branches) for _ in branch]
    hit = _find_joint(words, joints)
    if hit is not None:
        joint, first, last = hit
        rest, levels = words[:first] + words[last:], depth[:first] + depth[last:]
        for start in _starts(rest, levels):
            stem, suffix = _without_unit("_".join(rest[start:]))
            if _QUANTITY_OF.get(stem, "t_s") != "t_s":
                style = "_".join([*words[:first], "*", *words[last:]])
                return Meaning(_QUANTITY_OF[stem], style, joint, True, unit or suffix)
    for start in _starts(words, depth):
        stem, suffix = _without_unit("_".join(words[start:]))
        parts = _NUMBERED.match(stem)
        if parts is not None and parts["name"] in _QUANTITY_OF:
            # Of joint1.q and joint2.q, too, the values belong together.
            style = re.sub(r"\d+", "*", "_".join([*words[:start], parts["name"]]))
            number = int(parts["number"] or 0)
            return Meaning(_QUANTITY_OF[parts["name"]], style, number, False, unit or suffix)
    return None


def joint_of(name: str, joints: Sequence[str]) -> int | None:
    """Which joint a column is named after, from 0; None for none, or for several."""
    hit = _find_joint(_WORD.findall(name.lower()), joints)
    return None if hit is None else hit[0]


def robot_order(names: Sequence[str], joints: Sequence[str], what: str) -> list[int]:
    """Which of the columns are the robot's joints, in its order, by the joints' names in theirs.

    Returns:
        Numbers of columns: all, as they are, where no joint or one of them is named twice.
    """
    places = [joint_of(name, joints) for name in names]
    named = [place for place in places if place is not None]
    if not named or len(set(named)) < len(named):
        return list(range(len(names)))
    missing = [joint for number, joint in enumerate(joints) if number not in named]
    if missing:
        example = names[places.index(named[0])]
        raise DatasetError(
            f"{what}: columns are named after joints ({example}), but there is none of "
            f"{', '.join(missing)}; other columns are listed one by one, in the robot's order: "
            "--map QUANTITY=NAME,NAME,…",
            code="joint-without-column",
        )
    return [places.index(number) for number in range(len(joints))]


def clock_of(name: str) -> tuple[str, bool] | None:
    """Of a clock in two columns (stamp_sec and stamp_nanosec): its name, and whether these are ns.

    None for another thing.
    """
    words = _WORD.findall(name.lower())
    clock = _CLOCK.fullmatch(words[-1]) if words else None
    return None if clock is None else ("_".join(words[:-1]), clock[1] is not None)


def _find_joint(words: Sequence[str], joints: Sequence[str]) -> tuple[int, int, int] | None:
    """Return the only joint that is named, and where its words begin and end; the longest wins."""
    hits = []
    for number, joint in enumerate(joints):
        parts = _WORD.findall(joint.lower())
        hits += [
            (number, first, first + len(parts))
            for first in range(len(words) - len(parts) + 1)
            if parts and list(words[first : first + len(parts)]) == parts
        ]
    hits = [
        hit
        for hit in hits
        if not any(
            other[1] <= hit[1] and hit[2] <= other[2] and other[1:] != hit[1:] for other in hits
        )
    ]
    return hits[0] if len(hits) == 1 else None


def _starts(words: Sequence[str], depth: Sequence[int]) -> list[int]:
    """Where a quantity may begin: at the first word, or behind branches of a tree."""
    starts = [n for n in range(len(words)) if n == 0 or depth[n] != depth[n - 1]]
    wanted = [n for n, word in enumerate(words) if _WANTED.fullmatch(word)]
    return [start for start in starts if not wanted or start <= wanted[0]]


def _without_unit(text: str) -> tuple[str, str | None]:
    for suffix in sorted(_UNIT_SUFFIXES, key=len, reverse=True):
        if text.endswith(f"_{suffix}"):
            return text.removesuffix(f"_{suffix}"), _UNIT_SUFFIXES[suffix]
    return text, None
