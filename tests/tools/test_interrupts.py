"""Signals that end a command in order."""

from __future__ import annotations

import signal

import pytest

from daq.system.signals import ENDINGS
from tools.shared.interrupts import interrupted_by_any_signal


@pytest.mark.parametrize("number", ENDINGS)
def test_each_of_them_interrupts_and_is_given_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), interrupted_by_any_signal():
        signal.raise_signal(number)
    assert signal.getsignal(number) is before
