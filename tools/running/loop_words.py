"""`armature loop` as a command line, for those who start one."""

from __future__ import annotations

import argparse
from pathlib import Path

from daq.links.address import LinkKind, parse_link

_MOCK_TIMEOUT_MS = 100
"""Computers with a mock are ordinary ones: now and then away for longer than a robot's 10 ms."""


def loop_words(
    arguments: argparse.Namespace,
    *,
    record: str | None,
    on_fault: str,
    runtime: Path | None,
    is_json: bool,
) -> list[str]:
    """The verb and its options for a loop as some other verb's options ask for it.

    On a mock it opens emulated SPI devices.

    Args:
        arguments: With the options of `tools.verbs.loop.add_loop_options`.
        record: Name of a recording to ask for; None for none.
        on_fault: `exit` or `stay`.
        runtime: Directory of the sockets.
        is_json: Whether it shall print its summary.
    """
    is_mock = parse_link(arguments.link).kind is LinkKind.MOCK
    timeout_ms = arguments.command_timeout_ms
    if timeout_ms is None and is_mock:
        timeout_ms = _MOCK_TIMEOUT_MS
    values = {
        "--robot": arguments.robot,
        "--link": arguments.link.replace("mock", "spi") if is_mock else arguments.link,
        "--on-fault": on_fault,
        "--runtime": runtime,
        "--profile": arguments.profile,
        "--duration": arguments.duration,
        "--command-timeout-ms": timeout_ms,
        "--play": arguments.play,
        "--keys": arguments.keys,
        "--plotjuggler": arguments.plotjuggler,
        "--record": record,
        "--bench": arguments.bench,
    }
    words = ["loop"]
    for option, value in values.items():
        words += [] if value is None else [option, str(value)]
    words += ["--json"] if is_json else []
    for option in ("arm", "enable", "home"):
        words += [f"--{option}"] if getattr(arguments, option) else []
    for address in arguments.bind:
        words += ["--bind", address]
    return words
