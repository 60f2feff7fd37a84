"""Events of a loop in another process arrive as what they are."""

from __future__ import annotations

import os

import pytest

from daq.loop.process.event_log import EventWriter
from daq.samples.batches import Event
from tools.running.events import EventPipe, Teller


def event(
    number: int = 0, *, kind: str = "state", severity: str = "info", text: str = "x"
) -> Event:
    return Event(seq=number, t_ns=number, kind=kind, text=text, severity=severity, source="j")


def test_they_come_through_a_pipe_as_they_are() -> None:
    heard: list[Event] = []
    pipe = EventPipe(heard.append)
    writer = EventWriter(os.dup(pipe.far_end))
    pipe.release_far_end()
    pipe.listen()
    assert heard == []
    sent = [event(number, text="a\nb ü") for number in range(5)]
    writer(tuple(sent[:2]))
    writer(tuple(sent[2:]))
    pipe.listen()
    assert heard == sent
    writer.close()
    pipe.listen()
    assert heard == sent
    pipe.close()


def test_what_does_not_fit_is_dropped_and_never_waited_for() -> None:
    heard: list[Event] = []
    pipe = EventPipe(heard.append)
    writer = EventWriter(os.dup(pipe.far_end))
    many = tuple(event(number, text="y" * 1000) for number in range(20))
    for _ in range(10):
        writer(many)
    assert writer.dropped > 0
    pipe.listen()
    assert 0 < len(heard) < 200
    heard.clear()
    writer((event(7),))  # joined to a line that was cut off
    writer((event(8),))
    pipe.listen()
    assert event(8) in heard
    writer.close()
    pipe.release_far_end()
    pipe.close()


def test_nobody_listens() -> None:
    pipe = EventPipe(lambda _: None)
    writer = EventWriter(os.dup(pipe.far_end))
    pipe.release_far_end()
    pipe.close()
    writer((event(),))
    assert writer.dropped == 1
    writer.close()


def test_what_is_shown_already_is_not_said(capsys: pytest.CaptureFixture[str]) -> None:
    teller = Teller(is_shown=lambda event: event.kind == "shown")
    teller(event(kind="shown"))
    teller(event(text="said"))
    for number in range(3):
        teller(event(number, kind="fault", severity="error", text="again"))
    teller.close()
    lines = capsys.readouterr().err.splitlines()
    assert [line.rpartition(" ")[2] for line in lines[:2]] == ["said", "again"]
    assert len(lines) == 3, "repetitions are counted at the end"
