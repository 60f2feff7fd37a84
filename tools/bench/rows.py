"""Results of the friction bench from their files, one row per joint: what `bench table` shows.

Of several results of a joint the newest counts, and everything that does not is reported on stderr.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from daq.recording.text import plain
from daq.robot import Robot, load_robot, shipped_robots
from estimation.bench.result import BenchResult
from estimation.bench.result_file import read_result
from estimation.errors import DatasetError
from tools.shared.cli import say


class Found(NamedTuple):
    """A result and its file."""

    path: Path
    result: BenchResult


class Row(NamedTuple):
    """A joint.

    Attributes:
        main: Its friction; without one, what a load arm found out.
        load_arm: Its torque constant.
        gear: What the robot file calls its gear, where that is known.
    """

    main: Found
    load_arm: Found | None
    gear: str | None

    @property
    def has_friction(self) -> bool:
        """Whether there is more than a load arm's result."""
        return self.main is not self.load_arm

    @property
    def sources(self) -> list[Found]:
        """The results that it is made of."""
        return [self.main, self.load_arm] if self.has_friction and self.load_arm else [self.main]


def find_results(paths: Sequence[Path]) -> list[Found]:
    """Every result in these directories, whose other files are skipped, and files, each once.

    Raises:
        DatasetError: A file that was named is not a result, or there is none at all.
    """
    found: list[Found] = []
    seen: set[str] = set()
    for path in paths:
        is_directory = path.is_dir()
        for file in sorted(path.glob("*.json")) if is_directory else [path]:
            real = os.path.realpath(file)
            if real in seen:
                continue
            seen.add(real)
            try:
                found.append(Found(file, read_result(file)))
            except DatasetError as error:
                if not is_directory:
                    raise
                say(f"{error} (skipped)")
    if not found:
        places = ", ".join(map(str, paths))
        raise DatasetError(
            f"{places}: no bench result there (*.json); `armature bench analyse REC.h5 --out DIR` "
            "makes one",
            code="no-bench-result",
        )
    return found


def make_rows(found: Iterable[Found], given: Robot | None) -> list[Row]:
    """Return a row per joint, in the order of this robot, or of the shipped one it is from."""
    groups: dict[tuple[str, str], tuple[list[Found], list[Found]]] = {}
    for each in found:
        result = each.result
        frictions, load_arms = groups.setdefault((result.robot, result.joint), ([], []))
        is_load_arm = result.b_eq_nms is None and result.f_nm is None
        (load_arms if is_load_arm else frictions).append(each)
    ordered = []
    for (robot_name, joint_name), (frictions, load_arms) in groups.items():
        friction, load_arm = _newest(frictions), _newest(load_arms)
        if friction and load_arm and friction.result.motor != load_arm.result.motor:
            say(f"{load_arm.path}: another motor than in {friction.path}: not used")
            load_arm = None
        main = friction or load_arm
        if main is None:
            continue
        robot = given or (load_robot(robot_name) if robot_name in shipped_robots() else None)
        names = [joint.name for joint in robot.joints] if robot else []
        place = names.index(joint_name) if joint_name in names else len(names)
        gear = None
        if robot and joint_name in names:
            drive = robot.joints[place].drive
            if drive is not None and drive.gear_reduction == main.result.gear_reduction:
                gear = drive.gear
        # joint2 comes before joint10.
        parts = [
            (0, len(part.lstrip("0")), part) if part.isdigit() else (1, 0, part)
            for part in re.findall(r"\d+|\D+", joint_name)
        ]
        ordered.append(((robot_name, place, parts), Row(main, load_arm, gear)))
    return [row for _, row in sorted(ordered, key=lambda pair: pair[0])]


def _newest(found: Sequence[Found]) -> Found | None:
    if not found:
        return None
    *older, newest = sorted(found, key=lambda each: _moment(each.result.recorded_utc))
    for each in older:
        say(
            f"{plain(newest.result.joint)}: {newest.path} ({plain(newest.result.recorded_utc)}) "
            f"is newer than {each.path} ({plain(each.result.recorded_utc)}), which is not used"
        )
    return newest


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
