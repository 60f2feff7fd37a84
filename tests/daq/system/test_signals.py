"""Which signals ask a program to end, and when they are heard."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from daq.system.signals import ENDINGS, SAFE_STOPS, handled


@pytest.fixture
def ignored(request: pytest.FixtureRequest) -> Iterator[signal.Signals]:
    """A signal that is ignored from the start."""
    number: signal.Signals = request.param
    before = signal.signal(number, signal.SIG_IGN)
    yield number
    signal.signal(number, before)


def test_what_makes_a_loop_stop_safely() -> None:
    names = "HUP INT QUIT TERM TSTP USR1 USR2 ALRM XCPU"
    assert {number.name for number in SAFE_STOPS} == {f"SIG{name}" for name in names.split()}
    assert set(ENDINGS) < set(SAFE_STOPS)


@pytest.mark.parametrize("number", SAFE_STOPS)
def test_each_of_them_is_heard_and_given_back(number: signal.Signals) -> None:
    heard: list[int] = []
    before = signal.getsignal(number)
    with handled(SAFE_STOPS, lambda number, _: heard.append(number)):
        signal.raise_signal(number)
    assert heard == [number]
    assert signal.getsignal(number) is before


@pytest.mark.parametrize(
    "ignored", [number for number in SAFE_STOPS if number != signal.SIGHUP], indirect=True
)
def test_they_are_heard_although_they_were_ignored(ignored: signal.Signals) -> None:
    heard: list[int] = []
    with handled(SAFE_STOPS, lambda number, _: heard.append(number)):
        signal.raise_signal(ignored)
    assert heard == [ignored]
    assert signal.getsignal(ignored) is signal.SIG_IGN


@pytest.mark.parametrize("ignored", [signal.SIGHUP], indirect=True)
def test_a_terminal_that_is_closed_is_not_heard_under_nohup(ignored: signal.Signals) -> None:
    heard: list[int] = []
    with handled(SAFE_STOPS, lambda number, _: heard.append(number)):
        signal.raise_signal(ignored)
    assert heard == []
    assert signal.getsignal(ignored) is signal.SIG_IGN
