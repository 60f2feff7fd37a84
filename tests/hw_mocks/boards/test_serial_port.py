"""A board behind a pseudo-terminal, with faults; the host here lives in the server's own loop."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import pytest
from board_rig import Rig

from firmware_protocol.fields import Framing
from hw_mocks.faults.script import FaultScript, parse_fault
from hw_mocks.serial_port import SerialPort

MakeRig = Callable[..., Rig]
GIVE_UP_S = 20.0


class Host:
    """Sends a command, takes what comes back, until it has enough."""

    def __init__(self, rig: Rig, *faults: str, seed: int = 1) -> None:
        self.rig = rig
        self.script = FaultScript([parse_fault(text) for text in faults], seed=seed)
        self.port = SerialPort(rig.robot, 0, self.script)
        self.line = os.open(self.port.device, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        self.received = b""
        self.error: OSError | None = None

    def run(self, is_enough: Callable[[], bool]) -> None:
        """A command every few milliseconds; each is given the time to be answered."""
        over_s = time.monotonic() + GIVE_UP_S
        last_ms = -1

        def is_over() -> bool:
            nonlocal last_ms
            assert time.monotonic() < over_s, "nothing more came"
            now_ms = self.rig.robot.now_ns // 3_000_000
            try:
                if now_ms != last_ms:
                    last_ms = now_ms
                    os.write(self.line, self.rig.frame(Framing.RS485))
                self.received += os.read(self.line, 4096)
            except BlockingIOError:
                pass
            except OSError as error:
                self.error = error
            return self.error is not None or is_enough()

        try:
            self.port.run(is_over)
        finally:
            os.close(self.line)


def test_commands_are_answered(profile: str, rig: MakeRig) -> None:
    host = Host(rig(profile))
    size = host.rig.profile.frame_size + 2
    host.run(lambda: len(host.received) >= 10 * size)
    headers = [host.received[k : k + 2] for k in range(0, 10 * size, size)]
    assert headers == [bytes(2)] + [bytes([0xFF, size])] * 9


@pytest.mark.parametrize(("kind", "level"), [("stuck-low", 0x00), ("stuck-high", 0xFF)])
def test_a_stuck_line_reads_the_same_all_over(rig: MakeRig, kind: str, level: int) -> None:
    host = Host(rig("arm"), f"{kind}:at=0,for=1000")
    host.run(lambda: len(host.received) >= 400)
    assert set(host.received) == {level}


@pytest.mark.parametrize("kind", ["unplug", "vanish"])
def test_a_pulled_port_fails(rig: MakeRig, kind: str) -> None:
    host = Host(rig("arm"), f"{kind}:at=0.05")
    host.run(lambda: False)
    assert host.error is not None
    assert len(host.received) > 0


def test_a_board_in_brown_out_is_silent_and_comes_back_rebooted(rig: MakeRig) -> None:
    host = Host(rig("arm"), "brown-out:at=0.05,for=0.1")
    host.run(lambda: host.rig.robot.now_ns > 200_000_000 and len(host.received) % 40 == 0)
    frames = [host.received[k : k + 40] for k in range(0, len(host.received), 40)]
    stamps = [int.from_bytes(frame[4:6], "big") for frame in frames]
    restart = next(k for k in range(1, len(stamps)) if stamps[k] < stamps[k - 1])
    assert stamps[restart] < 30


@pytest.mark.parametrize("kind", ["flip", "drop", "repeat", "truncate", "delay", "board-error"])
def test_random_faults_strike_and_are_logged(rig: MakeRig, kind: str) -> None:
    host = Host(rig("arm"), f"{kind}:rate=0.5")
    host.run(lambda: len(host.script.events) >= 5)
    assert {event.kind.value for event in host.script.events} == {kind}
