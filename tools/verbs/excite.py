"""`armature excite`: find a trajectory that identifies an arm well, and write it to a file."""

from __future__ import annotations

import argparse
import hashlib
import time
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from daq.boards.wire_limits import within_boards
from daq.errors import ConfigError
from daq.motion.limits import RowChecker
from daq.motion.trajectory_file import write_trajectory
from daq.robot import Robot, parse_robot, robot_text
from estimation.excitation.settings import OBJECTIVES, ExcitationSettings
from tools.shared.cli import (
    FAILED,
    OK,
    Verbs,
    add_json_option,
    add_profile_option,
    add_robot_option,
    add_verb,
    new_file_problems,
    print_json,
    say,
)
from tools.shared.progress import progress_bar
from tools.version import __version__

if TYPE_CHECKING:
    from estimation.excitation.search import Excitation
    from estimation.model.parameters import Parameters

_EXAMPLE = """\
  armature excite --robot laas4 --out id.h5 --evaluations 500
  armature run --robot laas4 --link mock --fast --home --play id.h5 --record id_run.h5
  # one to validate with: armature excite --robot laas4 --out val.h5 --validation"""


def add_to(verbs: Verbs, summary: str) -> None:
    """Add the verb to the command line."""
    usual = ExcitationSettings()
    parser = add_verb(verbs, "excite", handler=_excite, summary=summary, example=_EXAMPLE)
    add_robot_option(parser)
    add_profile_option(parser, is_required=False)
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE.h5", help="where the trajectory goes"
    )
    parser.add_argument(
        "--validation",
        action="store_true",
        help="one to validate with: other random numbers, other frequencies (0.8 times f0)",
    )
    parser.add_argument(
        "--objective",
        choices=OBJECTIVES,
        default=usual.objective,
        help="cond: condition number of the base regressor (default); dopt: D-optimality",
    )
    for option, kind, default, metavar, text in (
        ("--f0", float, usual.f0_hz, "HZ", "fundamental frequency"),
        ("--harmonics", int, usual.harmonics, "N", "multiples of it"),
        ("--duration", float, usual.duration_s, "S", "how long the trajectory lasts"),
        ("--seed", int, usual.seed, "N", "one seed, one trajectory"),
    ):
        parser.add_argument(
            option, type=kind, default=default, metavar=metavar, help=f"{text} (default {default})"
        )
    parser.add_argument(
        "--evaluations",
        type=int,
        metavar="N",
        help="trajectories tried (default 2000 per joint, fewer in all beyond 7)",
    )
    parser.add_argument(
        "--terms",
        metavar="NAME,…",
        help="what is identified beside the links, in place of the robot file's: viscous, coulomb, "
        "drive_inertia, offset, asymmetric, stribeck",
    )
    add_json_option(parser)


def _excite(arguments: argparse.Namespace) -> int:
    settings = ExcitationSettings(
        f0_hz=arguments.f0,
        harmonics=arguments.harmonics,
        duration_s=arguments.duration,
        seed=arguments.seed,
        objective=arguments.objective,
        evaluations=arguments.evaluations,
        is_validation=arguments.validation,
    )
    text = robot_text(arguments.robot)
    robot = parse_robot(text, arguments.robot)  # one without boards can be excited, too
    _check(settings, robot, arguments.out, robot_source=arguments.robot)
    if robot.is_driven:
        robot = within_boards(robot.driven(), profile=arguments.profile)
    if find_spec("pinocchio") is None or find_spec("scipy") is None:
        say("armature: this takes Pinocchio and SciPy: pip install '.[estimation]'")
        return FAILED
    # They take a second: only commands that need them wait for them.
    from estimation.excitation.search import find_excitation

    parameters = _parameters(robot, arguments.terms)
    begin_s = time.monotonic()
    with progress_bar(f"trajectories for {robot.name}") as advance:
        found = find_excitation(robot, settings, parameters=parameters, progress=advance)
    seconds = time.monotonic() - begin_s
    rows = np.hstack([found.motion.q_rad, found.motion.dq_rad_s])
    if robot.is_driven:
        RowChecker(robot.driven()).check(rows)  # exactly what the loop will ask
    write_trajectory(
        arguments.out,
        t_s=found.motion.t_s,
        q_rad=found.motion.q_rad,
        dq_rad_s=found.motion.dq_rad_s,
        joint_names=[joint.name for joint in robot.joints],
        attributes=_origin(robot, text, found),
    )
    if arguments.json:
        print_json(_facts(arguments.out, found, seconds))
    else:
        from tools.printing.excite_table import show_excitation

        show_excitation(found, robot=robot, seconds=seconds)
        for note in _unknown(robot, found):
            say(f"armature: {note}")
        say(f"armature: {arguments.out} is written; next:")
        say(_next_command(robot, arguments.out, arguments.robot, arguments.profile))
    return OK


def _unknown(robot: Robot, found: Excitation) -> list[str]:
    """Return what the search could not keep to, because nobody said it: moving an arm hurts."""
    notes = []
    if robot.workspace.ground_z_m is None:
        notes.append("no ground is known, so none was kept to: state [workspace] ground_z_m")
    unknown = [joint.name for joint in robot.joints if joint.link is None]
    if unknown:
        notes.append(
            f"nothing is known of the links of {', '.join(unknown)}: no torque was checked"
        )
    if found.unchecked:
        pairs = ", ".join(" and ".join(pair) for pair in found.unchecked)
        notes.append(
            "links that overlap in every posture were not kept apart: those of "
            f"{pairs}; if they could touch, state a smaller capsule_radius_m"
        )
    return notes


def _check(settings: ExcitationSettings, robot: Robot, out: Path, *, robot_source: str) -> None:
    """Check the options before anything is computed.

    Raises:
        ConfigError: Options cannot be used; lists every problem.
    """
    problems = [f"--{problem}" for problem in settings.problems()]
    problems += new_file_problems("--out", out, ".h5", ".hdf5")
    if any(joint.is_on_bench for joint in robot.joints):
        problems.append(
            f"--robot {robot_source}: a joint on the bench has no links to identify; "
            "`armature bench friction` is for it"
        )
    if problems:
        raise ConfigError("armature excite", problems)


def _parameters(robot: Robot, terms: str | None) -> Parameters:
    from estimation.errors import DatasetError
    from estimation.model.parameters import choose_parameters

    names = None if terms is None else [name.strip() for name in terms.split(",") if name.strip()]
    try:
        return choose_parameters(robot, names)
    except DatasetError as error:
        raise ConfigError("armature excite", [f"--terms {terms}: {error}"]) from error


def _origin(robot: Robot, text: str, found: Excitation) -> dict[str, str | float]:
    """How the trajectory was made: what it takes to make it again."""
    return {
        "made_by": f"armature excite {__version__}",
        "robot": robot.name,
        "robot_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "purpose": "validation" if found.settings.is_validation else "identification",
        **_search(found),
    }


def _search(found: Excitation) -> dict[str, str | float]:
    return {
        "objective": found.settings.objective,
        "seed": found.settings.seed,
        "evaluations": found.evaluations,
        "f0_hz": found.trajectory.f0_hz,
        "harmonics": found.settings.harmonics,
        "duration_s": float(found.motion.t_s[-1]),
        "condition": found.condition,
        "condition_scaled": found.condition_scaled,
    }


def _facts(path: Path, found: Excitation, seconds: float) -> dict[str, object]:
    return {
        "file": str(path),
        "rank": found.rank,
        "parameters": found.parameters,
        "limits": [{**asdict(limit), "is_kept": limit.is_kept} for limit in found.limits],
        "unchecked": found.unchecked,
        "coverage": found.coverage,
        "seconds": seconds,
        "is_validation": found.settings.is_validation,
        **_search(found),
    }


def _next_command(robot: Robot, out: Path, robot_source: str, profile: str | None) -> str:
    if not robot.is_driven:
        return f"  {robot.name} has no boards: play {out} with its own controller"
    record = out.with_name(f"{out.stem}_run.h5")
    boards = f" --profile {profile}" if profile else ""
    return (
        f"  armature run --robot {robot_source} --link mock{boards} --fast --home "
        f"--play {out} --record {record}"
    )
