"""The mock robot that options of the command line ask for."""

from __future__ import annotations

import argparse
import dataclasses
import re
import zlib
from collections.abc import Callable, Collection
from functools import partial
from typing import TypeVar

import msgspec

from daq.errors import ConfigError
from daq.robot.description import DrivenRobot, Robot
from daq.robot.editing.edit import bench_text
from daq.robot.load import load_robot, parse_robot, robot_text
from firmware_protocol.profiles import PROFILES
from hw_mocks.errors import MockConfigError
from hw_mocks.faults.script import FaultKind, FaultScript, ScriptedFault, parse_fault
from hw_mocks.mock_robot import MockRobot
from hw_mocks.plants.effects import Effects, parse_effects
from hw_mocks.plants.hand import TURN_S, Hand
from hw_mocks.plants.truth import Truth, draw_truth
from tools.running.options import MockOptions
from tools.shared.cli import add_profile_option, seed_problems

S = TypeVar("S")
T = TypeVar("T")

_MARK = re.compile(r"\?seed=([0-9]{1,19})&spread=([0-9]+(?:\.[0-9]+)?(?:e-[0-9]+)?)\Z")

_TIMEOUT_MIN_HIGHEST_MS = 60_000
_FAULT_HELP = (
    "KIND:key=value,… with KIND one of "
    + ", ".join(kind.value for kind in FaultKind)
    + "; keys: rate (per exchange; skip: per period) or at (seconds), for (seconds), "
    "board (0, 1, …), direction (flip: command or reply), code and motor (board-error). "
    "May be repeated"
)


def add_board_options(parser: argparse.ArgumentParser) -> None:
    """Add `--profile` and `--fault`."""
    add_profile_option(parser, is_required=False)
    parser.add_argument("--fault", action="append", default=[], metavar="FAULT", help=_FAULT_HELP)


def add_mock_robot_options(parser: argparse.ArgumentParser) -> None:
    """Add `--effects`, `--seed` and `--spread`."""
    parser.add_argument(
        "--effects",
        default="default",
        metavar="EFFECTS",
        help="none, default or troubles, then changes: default,backlash_rad=0.003,iq_noise_a=0;"
        f" there are {', '.join(field.name for field in dataclasses.fields(Effects))}",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="everything random follows from it (default 0)"
    )
    parser.add_argument(
        "--spread",
        type=float,
        default=0.25,
        help="how far the true parameters are from the robot file's CAD values (default 0.25)",
    )


def add_foreign_program_options(parser: argparse.ArgumentParser) -> None:
    """Add `--command-timeout-min` and `--hand`, for programs that are not ours."""
    parser.add_argument(
        "--command-timeout-min",
        type=int,
        default=0,
        metavar="MS",
        help="boards wait at least this long for the next command, whatever time-out the program's "
        "frames say (0 stays off): for a computer that is now and then busy for longer; such as "
        "200 (default 0: as the frames say)",
    )
    parser.add_argument(
        "--hand",
        type=float,
        action="append",
        default=[],
        metavar="AT_S",
        help="turn all motors by hand past their index, forth and back in "
        f"{TURN_S:g} s, beginning this many seconds after the start: for a program that waits for "
        "it; calibrations must have ended by then. May be repeated",
    )


def add_joint_option(parser: argparse.ArgumentParser) -> None:
    """Add `--joint`."""
    parser.add_argument(
        "--joint",
        metavar="NAME",
        help="unmount this joint and put it on the bench: its motor and gear alone, without load",
    )


def joint_seed(seed: int, joint: str) -> int:
    """Return the seed of one joint on the bench: those of a robot are not copies of each other."""
    return seed ^ zlib.crc32(joint.encode())


def draw_problems(options: MockOptions) -> list[str]:
    """Return what is wrong with the options that the truth is drawn by."""
    problems = seed_problems(options.seed)
    if not 0.0 <= options.spread <= 1.0:
        problems.append(f"--spread {options.spread:g}: must lie between 0 and 1")
    return problems


def make_mock(
    options: MockOptions,
    *,
    impossible: Collection[FaultKind] = (),
    robot_as_run: Callable[[DrivenRobot], DrivenRobot] = lambda robot: robot,
) -> tuple[MockRobot, FaultScript]:
    """Return the robot and the faults that are asked for; `robot_as_run` changes its description.

    Raises:
        MockConfigError: Options are wrong, or a fault cannot happen on this kind of device; lists
            every problem of all of them.
    """
    problems: list[str] = []

    def read(parse: Callable[[S], T], given: S) -> T | None:
        try:
            return parse(given)
        except (ConfigError, MockConfigError) as error:
            problems.extend(f"{error.source}: {problem}" for problem in error.problems)
            return None

    problems += draw_problems(options)
    if not 0 <= options.timeout_min_ms <= _TIMEOUT_MIN_HIGHEST_MS:
        problems.append(
            f"--command-timeout-min {options.timeout_min_ms}: must lie between 0 and "
            f"{_TIMEOUT_MIN_HIGHEST_MS} ms"
        )
    hand = read(Hand, options.hand_at_s) if options.hand_at_s else None
    robot = read(partial(_load, joint=options.joint), options.robot)
    effects = read(parse_effects, options.effects)
    faults: list[ScriptedFault] = []
    for text in options.faults:
        fault = read(parse_fault, text)
        if fault is None:
            continue
        faults.append(fault)
        if fault.kind in impossible:
            why = "only in virtual time: add --fast" if fault.kind is FaultKind.SKIP else ""
            problems.append(f"fault {text!r}: {why or 'cannot happen on this kind of device'}")
        if robot and fault.board is not None and fault.board >= len(robot.boards):
            count = len(robot.boards)
            problems.append(f"fault {text!r}: robot {robot.name} has {count} boards, from 0")
    if problems or robot is None or effects is None:
        raise MockConfigError("the mock cannot be set up", problems)
    mock = MockRobot(
        robot_as_run(robot),
        profile=options.profile,
        seed=options.seed if options.joint is None else joint_seed(options.seed, options.joint),
        effects=effects,
        spread=options.spread,
        load_arm=options.load_arm,
        timeout_min_ms=options.timeout_min_ms,
        hand=hand,
    )
    return mock, FaultScript(faults, seed=options.seed, is_from_first_exchange=True)


def mark_of(truth: Truth) -> str:
    """Return what the truth of a mock was drawn by, to stand behind its link in a recording."""
    return f"?seed={truth.seed}&spread={truth.spread!r}"


def true_robot(link: str, robot: Robot) -> DrivenRobot | None:
    """Return the mock that a recording was made on, as a robot with its true links and rotors.

    The recording's link says how it was drawn, such as `mock?seed=1&spread=0.25`; None when it was
    not a mock, or the link does not say which.
    """
    found = _MARK.search(link)
    if found is None or not link.startswith(("mock", "spy+mock")):
        return None
    if not float(found[2]) <= 1.0:  # not one of our mocks
        return None
    robot = robot.driven()
    truth = draw_truth(robot, seed=int(found[1]), spread=float(found[2]))
    joints = tuple(
        msgspec.structs.replace(
            joint,
            link=true.link,
            dynamics=None,
            drive=msgspec.structs.replace(
                joint.drive, rotor_inertia_kg_m2=true.rotor_inertia_kg_m2
            ),
        )
        for joint, true in zip(robot.joints, truth.joints, strict=True)
    )
    return msgspec.structs.replace(robot, joints=joints)


def _load(name_or_path: str, joint: str | None) -> DrivenRobot:
    """Return the whole robot, or one of its joints on the bench."""
    if joint is None:
        return load_robot(name_or_path, profiles=PROFILES).driven()
    text = bench_text(robot_text(name_or_path), joint, source=name_or_path)
    return parse_robot(text, name_or_path, profiles=PROFILES).driven()
