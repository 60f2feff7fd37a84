"""Virtual time: one seed, one recording, byte for byte in its datasets."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from daq.motion.trajectory_file import write_trajectory

FAULTS = ("flip:rate=0.002", "drop:rate=0.001", "repeat:rate=0.001")


def run(lab: Any, name: str, *words: str) -> tuple[Path, dict[str, Any]]:
    """A short run: calibration, and a bit of holding."""
    file = lab.path / name
    line = ("run", "--robot", "laas4", "--link", "mock", "--fast", "--json", "--record", file)
    result = lab.do(*line, "--enable", "--duration", "4", *words)
    assert result.exit_code == 0, result.err
    summary: dict[str, Any] = result.json
    assert (summary["skipped"], summary["missing"]) == (0, 0)
    assert summary["cycles"] == summary["samples"] == round(summary["elapsed_s"] * 1000)
    assert summary.pop("file") == str(file)
    return file, summary


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
def test_one_seed_one_recording(lab: Any, faults: tuple[str, ...]) -> None:
    options = [word for fault in faults for word in ("--fault", fault)]

    first, summary = run(lab, "a.h5", "--seed", "3", *options)
    second, again = run(lab, "b.h5", "--seed", "3", *options)
    other, _ = run(lab, "c.h5", "--seed", "4", *options)

    assert summary.pop("session") != again.pop("session")
    assert summary == again
    assert (summary["corrupt"] > 0) == bool(faults)
    one, two, three = contents(first), contents(second), contents(other)
    assert len(one) > 30
    assert [name for name in one if one[name] != two[name]] == []
    assert "samples/iq_a" in [name for name in one if one[name] != three[name]]


def test_a_fault_ends_it_as_in_real_time(lab: Any) -> None:
    words = ("run", "--robot", "laas4", "--link", "mock", "--fast", "--enable", "--duration", "9")
    file = lab.path / "r.h5"

    result = lab.do(*words, "--fault", "stuck-high:at=2,for=1,board=1", "--record", file, "--json")

    assert result.exit_code == 3
    assert "board elbow on mock:elbow: 20 replies in a row" in result.json["reason"]
    assert "an idle line" in result.json["reason"]
    # Twenty cycles to notice, 50 ms to stop, and a few more to be sure that it was heard.
    assert 2.07 <= result.json["elapsed_s"] <= 2.08
    assert result.json["missing"] == 0


def test_a_homing_that_was_interrupted_leaves_the_trajectory_alone(lab: Any) -> None:
    """What cannot be followed is said, and is no success."""
    words = ("run", "--robot", "laas4", "--link", "mock", "--fast", "--json", "--home")

    result = lab.do(*words, "--duration", "30", "--fault", "brown-out:at=6,board=0")

    assert result.exit_code == 3
    assert "board shoulder" in result.json["reason"]


@pytest.mark.parametrize(("option", "what"), [("--home", "homing"), ("--play", "the trajectory")])
def test_too_short_for_what_was_asked(lab: Any, option: str, what: str) -> None:
    words = ["run", "--robot", "laas4", "--link", "mock", "--fast", "--json", option]
    if option == "--play":
        words.append(write_swing(lab.path / "t.h5", 0.3))

    result = lab.do(*words, "--duration", "4")

    assert result.exit_code == 1
    assert f"the time was over before {what} was: give a longer --duration" in result.err


def test_a_trajectory_beyond_the_limits_is_refused_before_anything_moves(lab: Any) -> None:
    file = write_swing(lab.path / "t.h5", 5.0)
    words = ("run", "--robot", "laas4", "--link", "mock", "--fast", "--json", "--play", file)

    result = lab.do(*words)

    assert (result.exit_code, result.out) == (1, "")
    assert re.search(r"t\.h5: joint.: 5\.\d+ rad/s at row \d+ .* limit 5 rad/s", result.err)


def write_swing(file: Path, amplitude_rad: float) -> Path:
    t_s = np.arange(0.0, 2.0, 1e-3)
    way = amplitude_rad * (1.0 - np.cos(np.pi * t_s))[:, None] + np.array([0.0, -1.57, 0.0, 0.0])
    speed = amplitude_rad * np.pi * np.sin(np.pi * t_s)[:, None] * np.ones((1, 4))
    write_trajectory(file, t_s=t_s, q_rad=way, dq_rad_s=speed)
    return file
