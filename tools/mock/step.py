"""`armature mock step`: boards enabled, calibrated and moved, in virtual time on the mock robot."""

from __future__ import annotations

import argparse
import dataclasses
import math
import time

from daq.boards.board import Reading
from daq.links.address import parse_link
from daq.robot.load import load_robot
from firmware_protocol.profiles import MODE_BITS, PROFILES, STATUS_BITS
from tools.running.boards import OpenBoards, open_boards
from tools.shared.cli import (
    BOARD_FAULT,
    FAILED,
    OK,
    Verbs,
    add_json_option,
    add_profile_option,
    add_robot_option,
    add_verb,
    make_console,
    print_json,
    say,
)

_PERIOD_NS = 1_000_000
_CALIBRATION_MAX_MS = 5000
_STEP_RAD = math.pi
_STEP_MS = 1000
_SHOWN_MS = (1, 10, 20, 50, 100, 200, 500, 1000)


def add_step(actions: Verbs) -> None:
    """Add the action to the command line."""
    parser = add_verb(
        actions,
        "step",
        handler=_step,
        summary="enable, calibrate and move mock boards at 1 kHz in virtual time",
        example="  armature mock step --robot laas4 --profile uomodri",
    )
    add_robot_option(parser)
    add_profile_option(parser, is_required=False)
    add_json_option(parser)


def _step(arguments: argparse.Namespace) -> int:
    robot = load_robot(arguments.robot, profiles=PROFILES).driven()
    started_s = time.perf_counter()
    with open_boards(robot, parse_link("mock"), profile=arguments.profile) as opened:
        motors = [
            [number for number, joint in enumerate(robot.joints_on(port), 1) if joint is not None]
            for port in robot.boards
        ]
        session = _Session(opened, motors)
        is_ready = session.calibrate()
        if is_ready:
            session.step()
    elapsed_s = time.perf_counter() - started_s
    if arguments.json:
        print_json({**session.as_dict(), "elapsed_s": elapsed_s})
    else:
        session.show()
        virtual_s = opened.now_ns() * 1e-9
        say(f"{virtual_s:.2f} s of the robot's time took {elapsed_s:.2f} s (virtual clock)")
    if session.faults:
        return BOARD_FAULT
    return OK if is_ready else FAILED


class _Session:
    """One run: calibrate every motor, then turn each by half a turn and watch."""

    def __init__(self, opened: OpenBoards, motors: list[list[int]]) -> None:
        self._opened = opened
        self._motors = motors
        self._modes = [MODE_BITS["ES"] + sum(MODE_BITS[f"EM{n}"] for n in ns) for ns in motors]
        self._ready_bits = [sum(STATUS_BITS[f"M{n}R"] for n in ns) for ns in motors]
        self._readings: list[Reading] = []
        self.calibration_ms: int | None = None
        self.samples: list[tuple[int, list[float], list[float]]] = []
        self.faults: list[str] = []

    def calibrate(self) -> bool:
        """Enable all motors and wait until they are ready."""
        for elapsed_ms in range(_CALIBRATION_MAX_MS):
            self._cycle()
            if self.faults:
                return False
            if all(
                reading.values is not None and reading.values.status & ready == ready
                for reading, ready in zip(self._readings, self._ready_bits, strict=True)
            ):
                self.calibration_ms = elapsed_ms
                return True
        return False

    def step(self) -> None:
        """Command a position step and note how the motors follow."""
        gains = {"kp_a_per_rad": (3.0, 3.0), "kd_a_s_per_rad": (0.3, 0.3)}
        for elapsed_ms in range(1, _STEP_MS + 1):
            self._cycle(motor_position_rad=(_STEP_RAD, _STEP_RAD), **gains)
            if elapsed_ms in _SHOWN_MS:
                seen = [
                    (reading.values.motor_position_rad[n - 1], reading.values.iq_a[n - 1])
                    for reading, motors in zip(self._readings, self._motors, strict=True)
                    for n in motors
                    if reading.values
                ]
                self.samples.append((elapsed_ms, [p for p, _ in seen], [i for _, i in seen]))

    def _cycle(self, **fields: object) -> None:
        self._opened.sleep_until_ns(self._opened.now_ns() + _PERIOD_NS)
        self._readings = []
        for board, mode in zip(self._opened.boards, self._modes, strict=True):
            command = board.command(mode=mode, timeout_ms=10, isat_a=(5.0, 5.0), **fields)
            reading = board.exchange(command)
            self._readings.append(reading)
            fault = reading.values and board.profile.fault_of(reading.values.status)
            if fault and not self.faults:
                self.faults.append(f"{board.name}: error {fault.code}, {fault.meaning}")

    def as_dict(self) -> dict[str, object]:
        """Return the session, ready for JSON."""
        return {
            "calibration_s": None if self.calibration_ms is None else self.calibration_ms * 1e-3,
            "samples": [
                {"time_s": elapsed_ms * 1e-3, "motor_position_rad": positions, "iq_a": currents}
                for elapsed_ms, positions, currents in self.samples
            ],
            "counters": {b.name: dataclasses.asdict(b.counters) for b in self._opened.boards},
            "faults": self.faults,
        }

    def show(self) -> None:
        """Print tables for people."""
        from rich.table import Table

        console = make_console()
        for fault in self.faults:
            say(f"armature: {fault}")
        if self.calibration_ms is None:
            say("armature: the motors did not become ready")
            return
        console.print(f"all motors calibrated after {self.calibration_ms * 1e-3:.2f} s")
        motors = [
            f"{board.name} {motor} (rad)"
            for board, motors in zip(self._opened.boards, self._motors, strict=True)
            for motor in motors
        ]
        table = Table(title=f"Motor positions after a step of {_STEP_RAD:.3f} rad")
        for heading in ("time (ms)", *motors):
            table.add_column(heading, justify="right")
        for elapsed_ms, positions, _ in self.samples:
            table.add_row(str(elapsed_ms), *(f"{position:.3f}" for position in positions))
        console.print(table)
        for board in self._opened.boards:
            counts = dataclasses.asdict(board.counters)
            shown = ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in counts.items() if n)
            console.print(f"{board.name}: {shown}")
