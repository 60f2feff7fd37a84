"""A verb of our own on a mock, in real time: this process is the robot, another runs the verb."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from daq.system.signals import SAFE_STOPS
from hw_mocks.faults.script import FaultKind
from tools.running.child import Child
from tools.running.emulation import emulated_boards
from tools.running.mock_options import make_mock
from tools.running.options import MockOptions
from tools.running.processes import OUR_COMMAND, end_with_parent


def run_on_mock(options: MockOptions, words: Sequence[str]) -> int:
    """Run `armature` with these words on a mock's emulated SPI devices; return its exit code.

    Raises:
        MockConfigError: The mock cannot be set up as its options ask for.
    """
    mock, script = make_mock(options, impossible=[FaultKind.UNPLUG, FaultKind.SKIP])
    with Child(SAFE_STOPS) as child, emulated_boards(mock, script) as boards:
        child.start([*OUR_COMMAND, *words], boards.environment, before=_before_start)
        boards.serve(child.is_over)
    return child.exit_code


def _before_start() -> None:
    end_with_parent()
    # Ctrl-Z goes to both of us and ends the verb once it is ready; suspended before, it would be
    # waited for in vain.
    signal.signal(signal.SIGTSTP, signal.SIG_IGN)
