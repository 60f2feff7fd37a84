"""What the verbs share: common options, exit codes, and errors as sentences instead of tracebacks.

Results go to stdout, everything else to stderr. Exit codes: 0 ok, 1 failed, 2 usage, 3 board fault,
130 interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from daq.errors import ConfigError, DaqError
from estimation.errors import EstimationError
from firmware_protocol.errors import ProtocolError
from firmware_protocol.profiles import PROFILES
from hw_mocks.errors import MockConfigError, MockError

if TYPE_CHECKING:
    from rich.console import Console

OK, FAILED, USAGE, BOARD_FAULT, INTERRUPTED = 0, 1, 2, 3, 130
_SEED_MAX = (1 << 63) - 1
"""What the files that state a seed can hold."""

Handler = Callable[[argparse.Namespace], int]
Verbs: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001


def seed_problems(seed: int) -> list[str]:
    """Return what is wrong with the option --seed."""
    if 0 <= seed <= _SEED_MAX:
        return []
    return [f"--seed {seed}: must not be negative, nor more than {_SEED_MAX}"]


def add_verb(
    verbs: Verbs, name: str, *, handler: Handler | None, summary: str, example: str
) -> argparse.ArgumentParser:
    """Add a verb whose help ends with examples to copy and paste."""
    parser = verbs.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"example:\n{example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    if handler is not None:
        parser.set_defaults(handler=handler)
    return parser


def add_robot_option(parser: argparse.ArgumentParser) -> None:
    """Add `--robot NAME|FILE`."""
    parser.add_argument(
        "--robot",
        required=True,
        metavar="NAME|FILE",
        help="a shipped robot (laas4, bench1) or a robot file",
    )


def add_link_option(parser: argparse.ArgumentParser) -> None:
    """Add `--link ADDRESS`."""
    parser.add_argument(
        "--link",
        required=True,
        metavar="ADDRESS",
        help="mock, spi, or serial:///dev/ttyUSB0?baud=2000000; spy+ in front traces it",
    )


def add_network_options(parser: argparse.ArgumentParser) -> None:
    """Add `--bind ADDRESS`, `--keys DIR` and `--plotjuggler PORT`."""
    parser.add_argument(
        "--bind",
        action="append",
        default=[],
        metavar="tcp://HOST:PORT",
        help="also listen there, with --keys: commands on PORT, samples on PORT + 1",
    )
    parser.add_argument("--keys", type=Path, metavar="DIR", help="keys of `armature keys new`")
    parser.add_argument(
        "--plotjuggler",
        nargs="?",
        type=_port,
        const=9872,
        metavar="PORT",
        help="publish for PlotJuggler on 127.0.0.1 (port 9872 by default), 100 Hz",
    )


def _port(text: str) -> int:
    port = int(text)
    if not 1 <= port <= 65535:  # ZeroMQ would silently take another one
        raise argparse.ArgumentTypeError(f"{text}, expected 1 to 65535")
    return port


def add_profile_option(parser: argparse.ArgumentParser, *, is_required: bool) -> None:
    """Add `--profile NAME`."""
    parser.add_argument(
        "--profile",
        choices=list(PROFILES),
        required=is_required,
        help="wire format" if is_required else "wire format, in place of the robot file's",
    )


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def new_file_problems(option: str, path: Path, *suffixes: str) -> list[str]:
    """Return why an option cannot name a file that is to be made."""
    problems = []
    parent = path.absolute().parent
    if suffixes and path.suffix not in suffixes:
        problems.append(f"{option} {path}: expected a name that ends in {' or '.join(suffixes)}")
    elif not path.name:
        problems.append(f"{option} '{path}': expected the name of a file")
    elif os.path.lexists(path):
        problems.append(f"{option} {path}: is there already and is not overwritten")
    if not parent.is_dir():
        problems.append(f"{option} {path}: there is no directory {parent}")
    elif not os.access(parent, os.W_OK):
        problems.append(f"{option} {path}: its directory cannot be written")
    return problems


def print_json(value: object) -> None:
    """Print one JSON object on stdout."""
    print(msgspec.json.encode(value).decode())


def say(text: str) -> None:
    """Print a line for people, on stderr."""
    print(text, file=sys.stderr)


def make_console() -> Console:
    """Return where tables for people are printed."""
    from rich.console import Console

    class QuietlyCut(Console):
        def on_broken_pipe(self) -> None:
            # Rich would end the process with exit code 1, which for us means something else.
            raise BrokenPipeError

    return QuietlyCut()


def open_streams() -> None:
    """Make sure that stdin, stdout and stderr can be used, whatever the caller closed.

    A file opened later must not take the place of a closed stdout, and a character that the
    terminal's encoding lacks must not end a command.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            # The lowest free descriptor is the one that was closed; programs that we start get it.
            descriptor = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(descriptor, True)
            stream = open(descriptor, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def run_guarded(run: Callable[[], int]) -> int:
    """Run a command; what a user can get wrong ends in a sentence and an exit code."""
    try:
        try:
            exit_code = run()
        except SystemExit as end:  # how argparse ends, after a message of its own
            exit_code = end.code if isinstance(end.code, int) else OK
        # What is still buffered fails here if it fails, and not while Python shuts down.
        sys.stdout.flush()
    except (ConfigError, MockConfigError) as error:
        _say_error(error)
        return USAGE
    except (KeyboardInterrupt, ImportError) as error:
        if not _was_interrupted(error):
            raise
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has left (`armature … | head`): nothing more to say.
        _drop_output()
        return OK
    except (DaqError, ProtocolError, MockError, EstimationError) as error:
        _say_error(error)
        return FAILED
    except OSError as error:
        # A full disk, no place for temporary files: a traceback would not explain it better.
        say(f"armature: {error}")
        _drop_output()
        return FAILED
    return exit_code


def _say_error(error: DaqError | ProtocolError | MockError | EstimationError) -> None:
    """Say what happened, followed by the error's code where it has one."""
    code = getattr(error, "code", "")
    say(f"armature: {error}" + (f" [{code}]" if code else ""))


def _was_interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind it: extension modules turn it into an error of their own."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _drop_output() -> None:
    """Send what is still buffered nowhere, so that Python's shutdown does not fail on it."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
