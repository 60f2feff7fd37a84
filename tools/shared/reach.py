"""The options by which verbs reach a loop, and the error when no loop is running."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from daq.errors import ConfigError
from daq.stream.command_client import CommandClient
from daq.stream.endpoints import Where, robot_endpoints
from daq.stream.errors import StreamError
from daq.stream.keys import Keys, load_keys
from daq.system.runtime_directory import default_runtime_path, is_loop_running, runtime_directory

_LOOK_EVERY_S = 0.1


def add_reach_options(parser: argparse.ArgumentParser) -> None:
    """Add `--runtime DIR`, `--connect ADDRESS` and `--keys DIR`."""
    parser.add_argument(
        "--runtime",
        type=Path,
        metavar="DIR",
        help="directory of the loop's sockets (default: /run/armature, or the user's own)",
    )
    parser.add_argument(
        "--connect", metavar="tcp://HOST:PORT", help="a loop on another computer; needs --keys"
    )
    parser.add_argument(
        "--keys", type=Path, metavar="DIR", help="our keys, see `armature keys --help`"
    )


@dataclass(frozen=True, slots=True)
class Reach:
    """Where a loop is."""

    runtime: Path | None
    """Directory of its sockets; None for the usual one."""
    connect: str | None
    """Address of a loop on another computer, in place of that."""
    keys: Path | None
    """Directory of our keys, for that."""

    @classmethod
    def from_namespace(cls, arguments: argparse.Namespace) -> Self:
        """Return the options of `add_reach_options`."""
        return cls(arguments.runtime, arguments.connect, arguments.keys)


def find_loop(reach: Reach, patience_s: float = 0.0) -> tuple[Where, Keys | None]:
    """Return where the options say that the loop is, and our keys.

    A loop that is being started is waited for, as long as the patience lasts.

    Raises:
        ConfigError: They contradict each other, or cannot be used.
        StreamError: No loop was started there.
    """
    if reach.connect is None:
        if reach.keys is not None:
            raise ConfigError("--keys", ["is for --connect; local sockets need none"])
        path = reach.runtime or default_runtime_path()
        if not _is_there(path, patience_s):
            raise StreamError(
                f"no loop is running in {path}: start one with `armature loop`, or name its "
                "directory with --runtime",
                code="no-loop",
            )
        return runtime_directory(path), None
    if not reach.connect.startswith("tcp://"):
        raise ConfigError(f"--connect {reach.connect}", ["expected tcp://HOST:PORT"])
    if reach.runtime is not None:
        raise ConfigError("--connect", ["cannot be combined with --runtime"])
    return reach.connect, None if reach.keys is None else load_keys(reach.keys)


def _is_there(path: Path, patience_s: float) -> bool:
    deadline_s = time.monotonic() + patience_s
    while not ((path / "commands").exists() and is_loop_running(path)):
        if time.monotonic() >= deadline_s:
            return False
        time.sleep(_LOOK_EVERY_S)
    return True


def open_client(reach: Reach, patience_s: float = 0.0) -> CommandClient:
    """Return a connection to the loop of `find_loop`, which says what can go wrong."""
    where, keys = find_loop(reach, patience_s)
    return CommandClient(robot_endpoints(where).commands, keys=keys)
