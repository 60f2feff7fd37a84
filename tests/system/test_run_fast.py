"""Virtual time: one seed, one recording, byte for byte in its datasets."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from commands import Result, armature

from daq.motion.trajectory_file import write_trajectory
from daq.recording import open_recording
from daq.system.signals import SAFE_STOPS
from hw_mocks.mock_link import MockLink

pytestmark = pytest.mark.chain

FAULTS = ("flip:rate=0.002", "drop:rate=0.001", "repeat:rate=0.001")


RUN = ("run", "--robot", "laas4", "--link", "mock", "--fast", "--json")


def run(
    do: Callable[..., Result], file: Path, *words: str
) -> tuple[dict[str, bytes], dict[str, Any]]:
    """A short run: calibration, and a bit of holding. What it recorded, and its summary."""
    result = do(*RUN, "--record", file, "--enable", "--duration", "4", *words)
    assert result.exit_code == 0, result.err
    summary: dict[str, Any] = result.json
    assert (summary["skipped"], summary["missing"]) == (0, 0)
    assert summary["cycles"] == summary["samples"] == round(summary["elapsed_s"] * 1000)
    assert summary.pop("file") == str(file)
    return contents(file), summary


def contents(file: Path) -> dict[str, bytes]:
    """All datasets as bytes."""
    found: dict[str, bytes] = {}

    def take(name: str, node: Any) -> None:
        if isinstance(node, h5py.Dataset):
            value = np.asarray(node[()])
            found[name] = repr(value.tolist()).encode() if value.dtype.hasobject else b""
            found[name] = found[name] or value.tobytes()

    with h5py.File(file) as recording:
        recording.visititems(take)
    return found


@pytest.mark.parametrize("faults", [(), FAULTS])
def test_one_seed_one_recording(tmp_path: Path, faults: tuple[str, ...]) -> None:
    options = [word for fault in faults for word in ("--fault", fault)]

    one, summary = run(armature, tmp_path / "a.h5", "--seed", "3", *options)
    two, again = run(armature, tmp_path / "b.h5", "--seed", "3", *options)
    three, _ = run(armature, tmp_path / "c.h5", "--seed", "4", *options)

    assert summary.pop("session") != again.pop("session")
    assert summary == again
    assert (summary["corrupt"] > 0) == bool(faults)
    assert len(one) > 30
    assert [name for name in one if one[name] != two[name]] == []
    assert "samples/iq_a" in [name for name in one if one[name] != three[name]]


@pytest.mark.system
def test_another_process_makes_the_same_recording(lab: Any, tmp_path: Path) -> None:
    here, _ = run(armature, tmp_path / "here.h5", "--seed", "3")
    there, _ = run(lab.do, lab.path / "there.h5", "--seed", "3")
    assert [name for name in here if here[name] != there[name]] == []


# Twenty cycles to notice. While boards calibrate they are off at once, and twenty commands go to
# the one that does not answer; later joints are braked until it answers, and have rested. A fault
# ends the run a batch later, when everybody has seen it.
@pytest.mark.parametrize(
    ("at_s", "ends_s"), [(2.0, 2.02 + 0.04), (6.0, 7.0 + 0.32)], ids=["calibrating", "ready"]
)
def test_a_fault_ends_it_as_in_real_time(tmp_path: Path, at_s: float, ends_s: float) -> None:
    words = ("--enable", "--duration", "9", "--fault", f"stuck-high:at={at_s},for=1,board=1")

    result = armature(*RUN, *words, "--record", tmp_path / "r.h5")

    assert result.exit_code == 3
    assert result.json["ending"] == "fault"
    for data in ("elbow", "mock:elbow", "20"):
        assert data in result.json["reason"]
    assert result.json["boards"][1]["counters"]["lost_replies"] >= 20
    assert result.json["elapsed_s"] == pytest.approx(ends_s, abs=0.012)
    assert result.json["missing"] == 0


def test_a_homing_that_fails_is_a_failure_of_the_run() -> None:
    """A bug: with a longer duration it was a success. Motors that do not turn do not follow."""
    words = ("--profile", "udriver2", "--fault", "board-error:code=0,at=1.5", "--duration", "20")
    outcome = armature(*RUN, "--home", *words)
    assert outcome.exit_code == 1
    assert outcome.json["trip_code"] in ("stall", "following-error")
    assert (outcome.json["state"], outcome.json["ending"]) == ("fault", "fault")


def test_a_homing_that_was_interrupted_leaves_the_trajectory_alone() -> None:
    """What cannot be followed is reported, and is not a success."""
    result = armature(*RUN, "--home", "--duration", "30", "--fault", "brown-out:at=6,board=0")

    assert result.exit_code == 3
    assert "board shoulder" in result.json["reason"]


@pytest.mark.parametrize("option", ["--home", "--play"])
def test_too_short_for_what_was_asked(tmp_path: Path, option: str) -> None:
    words = [option]
    if option == "--play":
        words.append(write_swing(tmp_path / "t.h5", 0.3))

    result = armature(*RUN, *words, "--duration", "4")

    assert result.exit_code == 1
    assert result.json["ending"] == "time-is-over"
    assert "--duration" in result.err


def test_a_trajectory_beyond_the_limits_is_refused_before_anything_moves(tmp_path: Path) -> None:
    result = armature(*RUN, "--play", write_swing(tmp_path / "t.h5", 2.0))

    assert (result.exit_code, result.out) == (1, "")
    assert re.search(r"t\.h5: joint.: 4\.5\d+ rad/s .* \d+ .* 4\.5 rad/s", result.err)


def write_swing(file: Path, amplitude_rad: float) -> Path:
    t_s = np.arange(0.0, 2.0, 1e-3)
    way = amplitude_rad * (1.0 - np.cos(np.pi * t_s))[:, None] + np.array([0.0, -1.57, 0.0, 0.0])
    speed = amplitude_rad * np.pi * np.sin(np.pi * t_s)[:, None] * np.ones((1, 4))
    write_trajectory(file, t_s=t_s, q_rad=way, dq_rad_s=speed)
    return file


@pytest.mark.parametrize("number", SAFE_STOPS)
def test_a_signal_makes_the_safe_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """While the motors calibrate; the recording is complete."""
    raise_at(500, number, monkeypatch)
    file = tmp_path / "r.h5"
    result = armature(*RUN, "--record", file, "--enable", "--duration", "60")

    assert result.exit_code == (130 if number == signal.SIGINT else 0)
    assert (result.json["state"], result.json["reason"]) == ("idle", number.name)
    assert (result.json["samples"], result.json["missing"]) == (result.json["cycles"], 0)
    with open_recording(file) as recording:
        modes = recording["command_mode"][:]
        assert modes.any()
        assert not modes[-1].any()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 1), (signal.SIGINT, 130)])
def test_a_trajectory_that_a_signal_ends_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, code: int
) -> None:
    raise_at(500, number, monkeypatch)
    result = armature(*RUN, "--play", write_swing(tmp_path / "t.h5", 0.3))

    assert result.exit_code == code
    assert ("the trajectory was stopped before its end" in result.err) == (code == 1)


def raise_at(exchanges: int, number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    """Get a signal in the middle of a run."""
    exchange, count = MockLink.exchange, 0

    def interrupt(link: MockLink, frame: bytes) -> bytes:
        nonlocal count
        count += 1
        if count == exchanges:
            signal.raise_signal(number)
        return exchange(link, frame)

    monkeypatch.setattr(MockLink, "exchange", interrupt)
