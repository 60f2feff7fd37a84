"""`armature bench communication` in virtual time: its figures against the mock's own account."""

from __future__ import annotations

import math
import signal
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from commands import Result, armature

import tools.bench.communication
from daq.bench.communication.run import BoardExchanges
from firmware_protocol.codec import command_codec
from firmware_protocol.profiles import PROFILES
from hw_mocks.faults.script import FaultEvent, FaultKind, FaultScript
from hw_mocks.mock_link import MockLink
from hw_mocks.mock_robot import MockRobot

EXCHANGES = 2000
KINDS = ("commands", "corrupt", "truncated", "silent", "mismatched", "stale", "stalled", "failed")


def communication(*words: str, profile: str = "arm") -> Result:
    where = ("--robot", "laas4", "--link", "mock", "--fast", "--profile", profile)
    duration = () if "--duration" in words else ("--duration", str(EXCHANGES * 1e-3))
    return armature("bench", "communication", *where, *duration, *words)


@pytest.fixture
def struck(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[FaultEvent]]:
    """What went wrong while it was measured: the fault script's own account."""
    scripts: list[FaultScript] = []
    marks: list[int] = []
    make = tools.bench.communication.make_mock
    begin, figures = BoardExchanges.begin, BoardExchanges.figures

    def make_and_keep(*arguments: Any, **options: Any) -> tuple[MockRobot, FaultScript]:
        mock, script = make(*arguments, **options)
        scripts.append(script)
        return mock, script

    def mark_begin(exchanges: BoardExchanges) -> None:
        marks.append(len(scripts[0].events))
        begin(exchanges)

    def mark_end(exchanges: BoardExchanges) -> Any:
        marks.append(len(scripts[0].events))
        return figures(exchanges)

    monkeypatch.setattr(tools.bench.communication, "make_mock", make_and_keep)
    monkeypatch.setattr(BoardExchanges, "begin", mark_begin)
    monkeypatch.setattr(BoardExchanges, "figures", mark_end)
    return lambda: scripts[0].events[marks[0] : marks[-1]]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Every frame that went to a board."""
    frames: list[bytes] = []
    exchange = MockLink.exchange

    def remember(link: MockLink, frame: bytes) -> bytes:
        frames.append(frame)
        return exchange(link, frame)

    monkeypatch.setattr(MockLink, "exchange", remember)
    return frames


# --- without faults -------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
def test_a_link_without_faults_is_good(profile: str) -> None:
    result = communication("--json", profile=profile)

    assert (result.exit_code, result.err) == (0, "")
    report = result.json
    assert (report["robot"], report["verdict"], report["is_virtual"]) == ("laas4", "good", True)
    assert report["elapsed_s"] == 2.0
    assert (report["host"]["periods"], report["host"]["skipped"]) == (EXCHANGES, 0)
    for board in report["boards"]:
        assert board["profile"] == profile
        assert (board["exchanges"], board["success"]) == (EXCHANGES, EXCHANGES)
        assert (board["success_share"], board["late"], board["lost"]) == (1.0, 0, 0)
        assert board["lost_by_kind"] == dict.fromkeys(KINDS, 0)
        assert (board["verdict"], board["reasons"]) == ("good", [])
        assert set(board["age_us"]) == set(board["transfer_us"]) == {"p50", "p99", "p999", "max"}
        # Virtual transfers take no time: what is left is what the profile says of replies, and a
        # period for each command by which the echo is later than usual.
        behaviour = PROFILES[profile].behaviour
        age_us, lags = board["age_us"], behaviour.reply_lag_max - 1
        assert age_us["max"] == pytest.approx(behaviour.reply_age_max_s * 1e6 + 1e3 * lags, abs=2)
        if lags == 0:
            assert age_us["p50"] == pytest.approx(behaviour.reply_age_max_s * 1e6, abs=2)


@pytest.mark.parametrize("profile", PROFILES)
def test_nothing_is_ever_enabled(profile: str, sent: list[bytes]) -> None:
    """Not to look, not to measure, not to take leave, whatever goes wrong on the way."""
    for fault in ("flip:rate=0.05", "brown-out:at=0.3", "truncate:rate=0.05"):
        communication("--duration", "0.8", "--fault", fault, profile=profile)
    codec = command_codec(PROFILES[profile])
    commands = [codec.decode(frame) for frame in sent if codec.is_sound(frame)]
    assert len(commands) > 4000
    assert {(command.mode, command.timeout_ms) for command in commands} == {(0, 0)}


# --- with faults ----------------------------------------------------------------------------------

RATE = 0.004
SCRIPTED = {
    "flip:direction=reply,": "corrupt",
    "flip:direction=command,": "commands",
    "drop:": "silent",
    "truncate:": "truncated",
    "repeat:": "stale",
    "delay:": "late",
}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("fault", SCRIPTED)
def test_figures_are_the_faults_that_struck(
    profile: str, fault: str, struck: Callable[[], list[FaultEvent]]
) -> None:
    result = communication("--json", "--fault", f"{fault}rate={RATE}", profile=profile)

    counter = SCRIPTED[fault]
    if PROFILES[profile].behaviour.reply_lag_max > 1 and counter in ("commands", "late"):
        counter = "none"  # hidden among echoes that are as late by themselves
    events = Counter(event.board for event in struck())
    for number, board in enumerate(result.json["boards"]):
        found = {**board["lost_by_kind"], "late": board["late"], "none": 0}
        expected = dict.fromkeys(found, 0)
        assert events[number] > 0.4 * RATE * EXCHANGES
        if counter != "none":
            expected[counter] = events[number]
        assert found == expected
        assert board["exchanges"] == EXCHANGES
        assert board["success"] == EXCHANGES - sum(expected.values())
    is_bad = counter != "none" and max(events.values()) > 1e-3 * EXCHANGES
    assert result.exit_code == (1 if is_bad else 0)
    assert result.json["verdict"] == ("bad" if is_bad else "good")


def test_a_few_losses_are_marginal(struck: Callable[[], list[FaultEvent]]) -> None:
    result = communication("--json", "--fault", "drop:at=0.5", "--fault", "drop:at=1,board=1")

    assert len(struck()) == 3
    assert result.exit_code == 0
    assert result.json["verdict"] == "marginal"
    first, second = result.json["boards"]
    assert (first["lost"], second["lost"]) == (1, 2)
    assert [reason["code"] for reason in first["reasons"]] == ["lost"]


def test_losses_make_data_old() -> None:
    """While a board says nothing, the newest values are those of before."""
    result = communication("--json", "--fault", "stuck-low:at=0.5,for=0.01,board=0")

    silent, fine = result.json["boards"]
    assert silent["lost_by_kind"]["silent"] == silent["unanswered_longest"] == 10
    assert silent["age_us"]["max"] == pytest.approx(10_037.0)
    assert fine["age_us"]["max"] == pytest.approx(37.0)


def test_a_board_that_vanishes(struck: Callable[[], list[FaultEvent]]) -> None:
    result = communication("--json", "--fault", "vanish:at=1,board=1")

    (event,) = struck()
    assert (event.board, event.kind) == (1, FaultKind.VANISH)
    assert result.exit_code == 3
    fine, gone = result.json["boards"]
    assert (fine["verdict"], gone["verdict"]) == ("good", "fault")
    assert fine["success"] == EXCHANGES
    failed = gone["lost_by_kind"]["failed"]
    assert failed == gone["lost"] == gone["unanswered_at_end"]
    assert failed + gone["success"] == EXCHANGES
    assert failed == pytest.approx(1000, abs=50)
    assert gone["reasons"][0]["code"] == "silent"
    assert "mock:elbow" in gone["reasons"][0]["text"]


def test_a_device_that_fails_for_a_while() -> None:
    result = communication("--json", "--fault", "io-error:at=1,for=0.1,board=0")

    assert result.exit_code == 1
    board = result.json["boards"][0]
    assert (board["lost_by_kind"]["failed"], board["late"]) == (100, 0)
    assert board["success"] == EXCHANGES - 100


@pytest.mark.parametrize("profile", PROFILES)
def test_a_board_that_reports_a_fault(profile: str) -> None:
    result = communication("--json", "--fault", "board-error:at=1,code=7,board=0", profile=profile)

    assert result.exit_code == 3
    board = result.json["boards"][0]
    assert (board["verdict"], board["success"]) == ("fault", EXCHANGES)
    assert board["reasons"][0]["code"] == "error-7"


def test_a_board_that_reboots() -> None:
    result = communication("--json", "--fault", "brown-out:at=1,for=0.005,board=0")

    assert result.exit_code == 1
    board = result.json["boards"][0]
    assert board["restarted"] == 1
    assert "restarted" in [reason["code"] for reason in board["reasons"]]


def test_a_frozen_echo() -> None:
    """The board obeys and answers, but confirms nothing: to the host its commands are lost."""
    result = communication("--json", "--fault", "stale-index:at=1,for=0.2,board=0")

    assert result.exit_code == 1
    board = result.json["boards"][0]
    assert board["lost_by_kind"]["commands"] == pytest.approx(200, abs=2)


def test_skipped_periods(struck: Callable[[], list[FaultEvent]]) -> None:
    result = communication("--json", "--fault", "skip:rate=0.01")

    host = result.json["host"]
    skipped = sum(int(event.detail.split()[0]) for event in struck())
    assert host["skipped"] == skipped > 5
    assert host["periods"] == pytest.approx(EXCHANGES, abs=5)
    assert all(b["exchanges"] == host["periods"] - skipped for b in result.json["boards"])
    assert (result.exit_code, host["verdict"]) == (0, "marginal")
    assert host["reasons"][0]["code"] == "skipped"


# --- nothing is measured --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("stuck-low:at=0,for=9", "silent"),
        ("stuck-high:at=0,for=9", "silent"),
        ("vanish:at=0", "failed"),
        ("board-error:at=0.001,code=7", "error-7"),
        ("stale-index:at=0.001,for=9", "not-heard"),
    ],
)
def test_a_board_that_cannot_be_spoken_to(fault: str, code: str) -> None:
    result = communication("--json", "--fault", f"{fault},board=1", profile="uomodri")

    assert result.exit_code == 3
    assert "host" not in result.json
    fine, board = result.json["boards"]
    assert fine["verdict"] is None
    assert (result.json["verdict"], board["verdict"]) == ("fault", "fault")
    (reason,) = board["reasons"]
    assert reason["code"] == code
    assert reason["text"] and reason["fix"]
    # The same for people.
    told = communication("--fault", f"{fault},board=1", profile="uomodri")
    assert told.exit_code == 3
    assert "not measured" in told.out


def test_interrupted_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    exchange, count = MockLink.exchange, 0

    def interrupt(link: MockLink, frame: bytes) -> bytes:
        nonlocal count
        count += 1
        if count == 1000:
            signal.raise_signal(signal.SIGINT)
        return exchange(link, frame)

    monkeypatch.setattr(MockLink, "exchange", interrupt)
    result = communication("--json", "--duration", "3600")

    assert result.exit_code == 130
    assert result.json["is_interrupted"] is True
    done = result.json["boards"][0]["exchanges"]
    assert 300 < done < 500
    assert result.json["boards"][0]["success"] == done
    # Then a last command to each board, and the reply that confirms it.
    assert count == 1000 + 2 * 2


def test_interrupted_before_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    exchange = MockLink.exchange

    def interrupt(link: MockLink, frame: bytes) -> bytes:
        signal.raise_signal(signal.SIGTERM)
        return exchange(link, frame)

    monkeypatch.setattr(MockLink, "exchange", interrupt)
    result = communication("--json")

    assert result.exit_code == 130
    assert (result.json["verdict"], result.json["is_interrupted"]) == (None, True)
    assert [board["verdict"] for board in result.json["boards"]] == [None, None]
    told = communication()
    assert (told.exit_code, told.lines[-1]) == (130, "interrupted before anything was measured")


# --- the command ----------------------------------------------------------------------------------


def test_the_table_for_people(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    result = communication("--fault", "flip:rate=0.01,direction=reply,board=1")

    assert result.exit_code == 1
    for text in ("shoulder", "mock:elbow, arm", "2000 (100 %)", "corrupt", "bad: board elbow"):
        assert text in result.out
    assert result.lines[-1] == "bad"
    assert "µs" not in result.out, "virtual times say nothing"
    assert result.err == ""


@pytest.mark.parametrize(
    "words",
    [
        ("--link", "spi", "--fast"),
        ("--link", "spi", "--fault", "drop:rate=0.1"),
        ("--link", "mock", "--fast", "--duration", "0"),
        ("--link", "mock", "--fast", "--duration", "nan"),
        ("--link", "mock", "--fast", "--fault", "unplug:at=1"),
        ("--link", "mock", "--fault", "skip:rate=0.1"),
        ("--link", "pigeon"),
        ("--link", "mock", "--fast", "--seed", "-1"),
    ],
    ids=" ".join,
)
def test_options_that_make_no_sense(words: tuple[str, ...]) -> None:
    result = armature("bench", "communication", "--robot", "bench1", *words)

    assert (result.exit_code, result.out) == (2, "")
    assert result.err


def test_the_shortest_measurement() -> None:
    report = communication("--json", "--duration", "1e-9").json
    assert [board["exchanges"] for board in report["boards"]] == [1, 1]
    assert not math.isnan(report["boards"][0]["age_us"]["p999"])


def test_the_help_says_what_the_words_mean() -> None:
    text = armature("bench", "communication", "--help").out
    for word in ("success", "late", "lost", "overlong", "skipped", "age", "transfer", "verdict"):
        assert f"\n{word} " in text
