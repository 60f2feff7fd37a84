"""The options of a run and of its mock, as typed values: `argparse.Namespace` ends here."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from daq.errors import ConfigError
from daq.links.address import LinkAddress, LinkKind, parse_link
from hw_mocks.plants.load_arm import MockLoadArm
from tools.shared.cli import add_network_options

_MOCK_TIMEOUT_MS = 100
"""Computers with a mock are ordinary ones: now and then busy for longer than a robot's 10 ms."""


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `loop` and `run` share: what `RunOptions.from_namespace` reads."""
    parser.add_argument(
        "--arm", action="store_true", help="allow motors to be enabled; not needed on a mock"
    )
    parser.add_argument("--duration", type=float, metavar="S", help="end after this many seconds")
    parser.add_argument(
        "--runtime", type=Path, metavar="DIR", help="directory of the sockets and the spool"
    )
    parser.add_argument(
        "--faults",
        type=Path,
        metavar="DIR",
        help="where the last 10 s before a fault are saved when no recorder runs (default: "
        "armature/faults in the user's state directory)",
    )
    parser.add_argument(
        "--command-timeout-ms",
        type=int,
        metavar="MS",
        help="boards stop their motors after this long without a command, in place of the robot "
        "file's; 100 on a mock, whose computer is now and then away for longer than 10",
    )
    parser.add_argument(
        "--enable", action="store_true", help="enable, calibrate and hold by itself"
    )
    parser.add_argument("--home", action="store_true", help="then find every joint's zero")
    parser.add_argument(
        "--play", type=Path, metavar="FILE", help="then follow a trajectory (homes first), and end"
    )
    add_network_options(parser)


def check_duration(duration_s: float | None) -> None:
    """Check a duration.

    Raises:
        ConfigError: It is not positive, or too long.
    """
    if duration_s is not None and not 0.0 < duration_s <= 1e7:
        raise ConfigError("--duration", [f"{duration_s:g} s: must be more than 0, at most 1e7"])


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of one run of the loop.

    Attributes:
        robot: Name of a shipped robot, or a robot file.
        link: The link's address, as typed.
        profile: Wire format in place of the robot file's.
        is_armed: Whether real motors may be enabled.
        duration_s: End after so long; None for never.
        runtime: Directory of the sockets and the spool; None for the usual one.
        faults: Where faults are saved when no recorder runs; None for the user's state directory.
        command_timeout_ms: Of all boards, in place of the robot file's.
        enables: Enable, calibrate and hold by itself.
        homes: Then find every joint's zero.
        play: Then follow this trajectory, and end.
        bench: Drive this plan of a bench test instead, and end.
        keys: Directory of the keys that those need.
        recording: Name of a recording to ask the recorder for; empty for one of its own choice,
            None for none.
    """

    robot: str
    link: str
    profile: str | None = None
    is_armed: bool = False
    duration_s: float | None = None
    runtime: Path | None = None
    faults: Path | None = None
    command_timeout_ms: int | None = None
    enables: bool = False
    homes: bool = False
    play: Path | None = None
    bench: Path | None = None
    bind: tuple[str, ...] = ()
    keys: Path | None = None
    plotjuggler_port: int | None = None
    recording: str | None = None
    ends_on_fault: bool = True

    @classmethod
    def from_namespace(cls, arguments: argparse.Namespace) -> Self:
        """Return the options of `add_run_options`, `--robot`, `--link` and `--profile`."""
        return cls(
            robot=arguments.robot,
            link=arguments.link,
            profile=arguments.profile,
            is_armed=arguments.arm,
            duration_s=arguments.duration,
            runtime=arguments.runtime,
            faults=arguments.faults,
            command_timeout_ms=arguments.command_timeout_ms,
            enables=arguments.enable,
            homes=arguments.home,
            play=arguments.play,
            bind=tuple(arguments.bind),
            keys=arguments.keys,
            plotjuggler_port=arguments.plotjuggler,
        )

    @property
    def address(self) -> LinkAddress:
        """The link's address.

        Raises:
            ConfigError: It is not an address.
        """
        return parse_link(self.link)

    @property
    def is_on_mock(self) -> bool:
        """Whether a mock robot was asked for."""
        return self.address.kind is LinkKind.MOCK

    @property
    def moves(self) -> bool:
        """Whether the loop moves motors by itself."""
        return self.enables or self.homes or self.play is not None or self.bench is not None

    @property
    def ends_when_done(self) -> bool:
        """Whether the run ends when its own steps are done."""
        return (self.play is not None or self.bench is not None) and self.duration_s is None

    @property
    def has_end(self) -> bool:
        """Whether the run is incomplete when somebody interrupts it."""
        return any(end is not None for end in (self.duration_s, self.play, self.bench))

    def on_emulated_devices(self) -> Self:
        """Return the same for a loop that opens a mock's emulated SPI devices.

        It is not armed: on devices whose emulation is proved it need not be, and on others it must
        not be, since a mock was asked for.
        """
        timeout_ms = self.command_timeout_ms
        return replace(
            self,
            link=self.link.replace(LinkKind.MOCK.value, LinkKind.SPI.value),
            is_armed=False,
            command_timeout_ms=_MOCK_TIMEOUT_MS if timeout_ms is None else timeout_ms,
        )

    def to_argv(self, *further: str) -> list[str]:
        """Return the words of `armature loop` with these options, and `further` ones."""
        values = {
            "--robot": self.robot,
            "--link": self.link,
            "--profile": self.profile,
            "--duration": self.duration_s,
            "--runtime": self.runtime,
            "--faults": self.faults,
            "--command-timeout-ms": self.command_timeout_ms,
            "--play": self.play,
            "--bench": self.bench,
            "--keys": self.keys,
            "--plotjuggler": self.plotjuggler_port,
            "--record": self.recording,
            "--on-fault": "exit" if self.ends_on_fault else "stay",
        }
        flags = {"--arm": self.is_armed, "--enable": self.enables, "--home": self.homes}
        return [
            "loop",
            *(f"{option}={value}" for option, value in values.items() if value is not None),
            *(option for option, is_set in flags.items() if is_set),
            *(f"--bind={address}" for address in self.bind),
            *further,
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class MockOptions:
    """Which mock robot, and what goes wrong on its wires; texts are read by `make_mock`.

    Attributes:
        robot: Name of a shipped robot, or a robot file.
        joint: Unmount this joint and put it on the bench; None for the whole robot.
        profile: Wire format in place of the robot file's.
        faults: As typed after `--fault`.
        effects: As typed after `--effects`.
        seed: Everything random follows from it.
        spread: How far the true parameters are from the robot file's CAD values.
        load_arm: What hangs on the output of a joint on the bench.
        timeout_min_ms: Boards take the time-outs of commands, other than 0, for at least this long.
        hand_at_s: When a hand turns the motors past their index, in seconds after the start.
    """

    robot: str
    joint: str | None = None
    profile: str | None = None
    faults: tuple[str, ...] = ()
    effects: str = "default"
    seed: int = 0
    spread: float = 0.25
    load_arm: MockLoadArm | None = None
    timeout_min_ms: int = 0
    hand_at_s: tuple[float, ...] = ()

    @classmethod
    def from_namespace(cls, arguments: argparse.Namespace, *, joint: str | None = None) -> Self:
        """Return the options of `add_mock_robot_options` and `add_board_options`, for one joint."""
        return cls(
            robot=arguments.robot,
            joint=joint,
            profile=arguments.profile,
            faults=tuple(arguments.fault),
            effects=arguments.effects,
            seed=arguments.seed,
            spread=arguments.spread,
        )

    def with_foreign_program(self, arguments: argparse.Namespace) -> Self:
        """Return the same with the options of `add_foreign_program_options`."""
        return replace(
            self,
            timeout_min_ms=arguments.command_timeout_min,
            hand_at_s=tuple(arguments.hand),
        )
