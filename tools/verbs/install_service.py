"""`armature install-service`: makes the loop and the recorder services of this computer.

Writes two systemd units, the user they run as, the rule for the SPI devices and limits for people
who run the loop by hand. It does not start the services: a person does that, as the last step.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import daq
from daq.errors import ConfigError, DaqError
from daq.links.address import LinkKind, parse_link
from daq.recording.whole_files import create_file
from daq.robot.load import parse_robot, robot_text, shipped_robots
from daq.service.units import (
    INSTALLED,
    LOOP_UNIT,
    RECORD_UNIT,
    RECORDINGS,
    ROBOT_FILE,
    USER,
    Service,
    service_files,
)
from firmware_protocol.profiles import PROFILES
from tools.shared.cli import (
    OK,
    USAGE,
    Verbs,
    add_json_option,
    add_network_options,
    add_verb,
    print_json,
    say,
)

_SYSTEMD_IS_RUNNING = Path("/run/systemd/system")
_BACKUP_SUFFIX = ".old"
"""Neither systemd nor udev nor pam_limits reads files with this suffix."""
_NEXT_STEPS = f"""\
next steps:
  sudo usermod -aG {USER} $USER            may command the robot; log in again
  sudo systemctl enable --now {RECORD_UNIT} {LOOP_UNIT}
  armature status"""


class InstallError(DaqError):
    """The services cannot be installed here."""


def add_to(verbs: Verbs, summary: str) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "install-service",
        handler=_install_service,
        summary=summary,
        example="  armature install-service --robot laas4 --dry-run",
    )
    parser.add_argument(
        "--robot",
        metavar="NAME|FILE",
        help=f"a shipped robot (laas4, bench1), or a robot file, which is copied to {ROBOT_FILE}",
    )
    parser.add_argument(
        "--link",
        default="spi",
        metavar="ADDRESS",
        help="spi (default) or serial:///dev/ttyUSB0?baud=2000000",
    )
    parser.add_argument(
        "--recordings",
        type=Path,
        default=RECORDINGS,
        metavar="DIR",
        help=f"where recordings go (default {RECORDINGS})",
    )
    add_network_options(parser)
    parser.add_argument(
        "--prefix",
        type=Path,
        default=Path("/"),
        metavar="DIR",
        help="write below this directory, for an image or a package, and run no command",
    )
    parser.add_argument("--dry-run", action="store_true", help="show everything, change nothing")
    parser.add_argument(
        "--force",
        action="store_true",
        help=f"replace files that differ, keeping the old ones as *{_BACKUP_SUFFIX}",
    )
    parser.add_argument(
        "--uninstall",
        action="store_true",
        help="stop the services and remove their files; recordings, robot file and user stay",
    )
    add_json_option(parser)


def _install_service(arguments: argparse.Namespace) -> int:
    if arguments.uninstall:
        return _uninstall(arguments.prefix, is_dry_run=arguments.dry_run, is_json=arguments.json)
    if arguments.robot is None:
        say("armature: which robot? armature install-service --robot NAME|FILE")
        return USAGE
    order = _Order(
        robot=arguments.robot,
        link=arguments.link,
        recordings=arguments.recordings,
        bind=tuple(arguments.bind),
        keys=arguments.keys,
        plotjuggler_port=arguments.plotjuggler,
    )
    files, commands = _plan(order)
    states = {path: _state(arguments.prefix, path, text) for path, text in files.items()}
    if not arguments.dry_run:
        _check_rights(arguments.prefix)
        _check_changes(states, is_forced=arguments.force)
        for path, text in files.items():
            if states[path] != "unchanged":
                _write(_below(arguments.prefix, path), text)
        if _is_live(arguments.prefix):
            _run(commands)
    warnings = list(_warnings(order))
    if arguments.json:
        rows = [
            {"path": str(path), "state": states[path], "text": text} for path, text in files.items()
        ]
        report = {"files": rows, "commands": commands, "warnings": warnings}
        print_json({"is_dry_run": arguments.dry_run, **report})
        return OK
    is_run = not arguments.dry_run and _is_live(arguments.prefix)
    for path, text in files.items():
        print(f"==> {path} ({states[path]})")
        if arguments.dry_run:
            print(text)
    for command in commands:
        print(f"$ {' '.join(command)}{'' if is_run else '   # not run'}")
    for warning in warnings:
        say(f"warning: {warning}")
    say("nothing was changed (--dry-run)" if arguments.dry_run else _NEXT_STEPS)
    return OK


# --- what is to be done ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """The options that the services are made from."""

    robot: str
    link: str
    recordings: Path
    bind: tuple[str, ...]
    keys: Path | None
    plotjuggler_port: int | None


def _plan(order: _Order) -> tuple[dict[Path, str], list[list[str]]]:
    """Return the files to write, and the commands to run then."""
    text = robot_text(order.robot)
    is_shipped = order.robot in shipped_robots()
    link = parse_link(order.link)
    robot = parse_robot(text, order.robot, profiles=PROFILES)
    if link.kind is LinkKind.MOCK:
        problem = "a service drives real boards; for mock boards use `armature run`"
        raise ConfigError(f"--link {order.link}", [problem])
    if link.kind is LinkKind.SERIAL and len(robot.boards) > 1:
        problem = f"robot {robot.name} has {len(robot.boards)} boards, a serial port carries one"
        raise ConfigError(f"--link {order.link}", [problem])
    if order.bind and order.keys is None:
        problem = "without --keys anybody could command the robot; see `armature keys`"
        raise ConfigError(f"--bind {order.bind[0]}", [problem])
    recordings = Path(os.path.abspath(order.recordings))
    files = service_files(
        Service(
            robot=robot,
            robot_argument=order.robot if is_shipped else str(ROBOT_FILE),
            link=link,
            link_argument=order.link,
            program=_program(),
            code=tuple(_code()),
            recordings=recordings,
            bind=order.bind,
            keys=order.keys and Path(os.path.abspath(order.keys)),
            plotjuggler_port=order.plotjuggler_port,
        )
    )
    if not is_shipped:
        files[ROBOT_FILE] = text
    commands = [["systemd-sysusers", "/etc/sysusers.d/armature.conf"]]
    # One that is there keeps its owner, whose home it may be.
    if not recordings.is_relative_to("/var/lib") and not recordings.exists():
        owner = ["-o", USER, "-g", USER, "-m", "0750"]
        commands.append(["install", "-d", *owner, str(recordings)])
    commands += [
        ["udevadm", "control", "--reload"],
        ["udevadm", "trigger", "--subsystem-match=spidev"],
        ["systemctl", "daemon-reload"],
    ]
    return files, commands


def _program() -> tuple[str, ...]:
    """Return how the services run `armature`: as installed for the current interpreter."""
    script = Path(sysconfig.get_path("scripts")) / "armature"
    return (str(script),) if script.exists() else (sys.executable, "-m", "tools.main")


def _code() -> Iterator[Path]:
    """Yield where the program is read from: Python, its packages, and ours."""
    for place in (Path(sys.prefix), Path(sys.base_prefix), Path(daq.__file__).parents[1]):
        yield place
        yield place.resolve()


def _state(prefix: Path, path: Path, text: str) -> str:
    target = _below(prefix, path)
    if not target.exists() and not target.is_symlink():
        return "new"
    try:
        return "unchanged" if target.read_text() == text else "different"
    except (OSError, UnicodeDecodeError):
        return "different"


def _below(prefix: Path, path: Path) -> Path:
    return prefix / path.relative_to("/")


def _is_live(prefix: Path) -> bool:
    """Whether it is this computer that is installed on, and systemd that runs it."""
    return prefix.resolve() == Path("/") and _SYSTEMD_IS_RUNNING.exists()


# --- doing it -------------------------------------------------------------------------------------


def _check_rights(prefix: Path) -> None:
    if prefix.resolve() == Path("/") and os.geteuid() != 0:
        words = " ".join(_program())
        raise InstallError(
            f"writing below /etc needs root: sudo {words} install-service …, or look first with "
            "--dry-run",
            code="not-root",
        )


def _check_changes(states: dict[Path, str], *, is_forced: bool) -> None:
    different = [str(path) for path, state in states.items() if state == "different"]
    if different and not is_forced:
        raise InstallError(
            f"already there with other content: {', '.join(different)}; nothing was changed. "
            f"Replace them with --force, which keeps the old ones as *{_BACKUP_SUFFIX}",
            code="file-exists",
        )


def _write(target: Path, text: str) -> None:
    """Write all of the file or nothing; an old file is kept beside it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists() or target.is_symlink():
        os.replace(target, target.with_name(target.name + _BACKUP_SUFFIX))
    create_file(target, text.encode())
    target.chmod(0o644)  # whatever the umask: the services run as another user


def _run(commands: Sequence[Sequence[str]]) -> None:
    for command in commands:
        try:
            subprocess.run(command, check=True, stdout=sys.stderr)
        except (OSError, subprocess.CalledProcessError) as error:
            raise InstallError(
                f"the files are written, but this failed: {' '.join(command)} ({error}); fix "
                "that and install again",
                code="command-failed",
            ) from error


def _uninstall(prefix: Path, *, is_dry_run: bool, is_json: bool) -> int:
    present = [path for path in INSTALLED if _below(prefix, path).exists()]
    before = [["systemctl", "disable", "--now", LOOP_UNIT, RECORD_UNIT]] if present else []
    after = [["systemctl", "daemon-reload"], ["udevadm", "control", "--reload"]] if present else []
    if not is_dry_run:
        _check_rights(prefix)
        if _is_live(prefix):
            _run(before)
        for path in present:
            _below(prefix, path).unlink()
        if _is_live(prefix):
            _run(after)
    if is_json:
        print_json({"removed": list(map(str, present)), "commands": before + after})
        return OK
    for path in present:
        print(f"removed {path}")
    for command in before + after:
        print(f"$ {' '.join(command)}")
    say(f"recordings, {ROBOT_FILE} and user {USER} are still there")
    return OK


def _warnings(order: _Order) -> Iterator[str]:
    """Yield what would keep the user of the services from its files."""
    if order.keys is not None:
        yield f"user {USER} must own the keys: sudo chown -R {USER}: {order.keys}"
    if order.recordings.exists() and order.recordings != RECORDINGS:
        yield f"user {USER} must be able to write into {order.recordings}"
    for path in dict.fromkeys(place.resolve() for place in _code()):
        # A service sees a directory in a home without what is above it.
        is_shown_alone = path.is_relative_to("/home") or path.is_relative_to("/root")
        for part in (path, *([] if is_shown_alone else path.parents)):
            with contextlib.suppress(OSError):
                if part.stat().st_mode & 0o001 == 0:
                    yield f"user {USER} cannot read {part}: chmod o+rx {part}, or install in /opt"
