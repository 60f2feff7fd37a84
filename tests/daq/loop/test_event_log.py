"""Events as log lines: nothing is repeated, everything is counted; the writer is a real process."""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec
import pytest

from daq.loop.process.event_log import QUIET_S, Digest, EventLog
from daq.samples.batches import Event


def event(text: str, *, kind: str = "fault", severity: str = "error", source: str = "elbow"):
    return Event(seq=0, t_ns=0, kind=kind, text=text, severity=severity, source=source)


def test_a_repetition_is_counted_and_told_later() -> None:
    digest = Digest(has_priorities=False)
    assert list(digest.add(event("no reply"), 0.0)) == ["armature: error: no reply"]
    for step in range(5):
        assert list(digest.add(event(f"no reply {step}"), 1.0 + step)) == []
    assert list(digest.tick(QUIET_S - 0.1)) == []
    assert list(digest.tick(QUIET_S)) == [
        "armature: error: no reply 4 (and 5 more of this kind)",
    ]
    assert list(digest.tick(QUIET_S + 1)) == []
    assert list(digest.add(event("again"), QUIET_S + 2)) == ["armature: error: again"]


def test_without_repetition_nothing_more_is_said() -> None:
    digest = Digest(has_priorities=False)
    assert len(list(digest.add(event("once"), 0.0))) == 1
    assert list(digest.tick(100.0)) == []
    assert list(digest.end()) == []


def test_what_is_left_is_told_at_the_end() -> None:
    digest = Digest(has_priorities=False)
    for _ in range(3):
        list(digest.add(event("no reply"), 0.0))
    assert list(digest.end()) == ["armature: error: no reply (and 2 more of this kind)"]
    assert list(digest.end()) == []


def test_an_event_after_the_quiet_time_tells_the_count_first() -> None:
    digest = Digest(has_priorities=False)
    list(digest.add(event("a"), 0.0))
    list(digest.add(event("b"), 1.0))
    assert list(digest.add(event("c"), QUIET_S)) == [
        "armature: error: b (and 1 more of this kind)",
        "armature: error: c",
    ]


@pytest.mark.parametrize("difference", [{"kind": "limit"}, {"source": "shoulder"}])
def test_other_kinds_and_sources_are_told(difference: dict[str, str]) -> None:
    digest = Digest(has_priorities=False)
    list(digest.add(event("a"), 0.0))
    assert list(digest.add(event("b", **difference), 0.0)) == ["armature: error: b"]


@pytest.mark.parametrize(
    "harmless",
    [
        event("mode", kind="other", severity="info"),
        event("active → stopping", kind="state", severity="info"),
        event("stopping → fault", kind="state"),
        event("look here", kind="mark", severity="info"),
    ],
    ids=lambda each: each.text,
)
def test_changes_of_state_remarks_and_information_are_always_told(harmless: Event) -> None:
    digest = Digest(has_priorities=False)
    lines = [line for _ in range(3) for line in digest.add(harmless, 0.0)]
    assert len(lines) == 3


PRIORITIES = {"error": "<3>armature: error: x", "warning": "<4>armature: warning: x"}
PRIORITIES |= {"info": "<6>armature: x", "odd": "<6>armature: odd: x"}


@pytest.mark.parametrize(("severity", "line"), PRIORITIES.items())
def test_priorities_for_the_journal(severity: str, line: str) -> None:
    assert list(Digest(has_priorities=True).add(event("x", severity=severity), 0.0)) == [line]


def run_writer(data: bytes, **environment: str) -> list[str]:
    clean = {name: value for name, value in os.environ.items() if name != "JOURNAL_STREAM"}
    done = subprocess.run(
        [sys.executable, "-m", "daq.loop.process.event_log"],
        input=data,
        stderr=subprocess.PIPE,
        env={**clean, **environment},
        check=True,
    )
    return done.stderr.decode().splitlines()


def encoded(*events: Event) -> bytes:
    return b"".join(msgspec.json.encode(each) + b"\n" for each in events)


@pytest.mark.system
def test_the_writer() -> None:
    lines = run_writer(encoded(event("a"), event("b"), event("c", severity="info")))
    assert lines == [
        "armature: error: a",
        "armature: c",
        "armature: error: b (and 1 more of this kind)",
    ]


@pytest.mark.system
def test_the_writer_under_systemd() -> None:
    assert run_writer(encoded(event("a")), JOURNAL_STREAM="8:1") == ["<3>armature: error: a"]


@pytest.mark.system
def test_a_line_that_was_cut_off_does_not_end_the_log() -> None:
    data = encoded(event("a"))[:30] + encoded(event("lost"), event("b", source="other"))
    assert run_writer(data) == ["armature: error: b"]


@pytest.mark.system
def test_a_full_pipe_neither_blocks_nor_raises(capfd: pytest.CaptureFixture[str]) -> None:
    log = EventLog()
    os.kill(log._process.pid, 19)  # SIGSTOP: nobody reads
    many = tuple(event(f"event {number}", source=str(number)) for number in range(200))
    for _ in range(20):
        log(many)
    assert log.dropped > 0
    os.kill(log._process.pid, 18)  # SIGCONT
    log.close(timeout_s=20.0)
    assert "armature: error: event 0" in capfd.readouterr().err


@pytest.mark.system
def test_a_log_whose_writer_died_is_no_reason_to_stop() -> None:
    log = EventLog()
    log._process.kill()
    log._process.wait()
    log((event("a"),))
    assert log.dropped == 1
    log.close()
