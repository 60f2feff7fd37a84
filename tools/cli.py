"""What the verbs share: common options, exit codes, and errors as sentences instead of tracebacks.

Results go to stdout, everything else to stderr. Exit codes: 0 ok, 1 failed, 2 usage, 3 board fault,
130 interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import msgspec

from daq.errors import ConfigError, DaqError
from firmware_protocol.errors import ProtocolError
from firmware_protocol.profiles import PROFILES
from hw_mocks.errors import MockConfigError, MockError

OK, FAILED, USAGE, BOARD_FAULT, INTERRUPTED = 0, 1, 2, 3, 130

Handler = Callable[[argparse.Namespace], int]


def add_verb(
    verbs: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    *,
    handler: Handler | None,
    summary: str,
    example: str,
) -> argparse.ArgumentParser:
    """Add a verb whose help ends with examples to copy and paste."""
    parser = verbs.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"example:\n{example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if handler is not None:
        parser.set_defaults(handler=handler)
    return parser


def add_robot_option(parser: argparse.ArgumentParser) -> None:
    """`--robot NAME|FILE`."""
    parser.add_argument(
        "--robot",
        required=True,
        metavar="NAME|FILE",
        help="a shipped robot (laas4, bench1) or a robot file",
    )


def add_link_option(parser: argparse.ArgumentParser) -> None:
    """`--link ADDRESS`."""
    parser.add_argument(
        "--link",
        required=True,
        metavar="ADDRESS",
        help="mock, spi, or serial:///dev/ttyUSB0?baud=2000000; spy+ in front traces it",
    )


def add_profile_option(parser: argparse.ArgumentParser, *, is_required: bool) -> None:
    """`--profile NAME`."""
    parser.add_argument(
        "--profile",
        choices=list(PROFILES),
        required=is_required,
        help="wire format" if is_required else "wire format, in place of the robot file's",
    )


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """`--json`."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def print_json(value: object) -> None:
    """One JSON object on stdout."""
    print(msgspec.json.encode(value).decode())


def say(text: str) -> None:
    """A line for the person, on stderr."""
    print(text, file=sys.stderr)


def run_handler(handler: Handler, arguments: argparse.Namespace) -> int:
    """Run a verb; what a user can get wrong ends in a sentence and an exit code."""
    try:
        return handler(arguments)
    except (ConfigError, MockConfigError) as error:
        say(f"armature: {error}")
        return USAGE
    except (DaqError, ProtocolError, MockError) as error:
        say(f"armature: {error}")
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has left (`armature … | head`): nothing more to say.
        sys.stderr.close()
        return OK
