"""`armature import`: from files to a recording that everything else reads."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import read_segments, summarise
from public_data import data_folder

from daq.recording import RecordingWriter, open_recording
from daq.recording.layout import MODES, STATES
from estimation.signals.preparation import choose_settings, prepare

Armature = Callable[..., Any]
ROWS = 3000

JOINT = """
[[joints]]
name = "joint{number}"
dh = {{ a_m = 0, d_m = 0, alpha_rad = 0 }}
[joints.transmission]
gear_reduction = {reduction}
direction = {direction}
joint_offset_rad = {offset}
[joints.limits]
position_min_rad = -5
position_max_rad = 5
velocity_max_rad_s = 20
torque_max_nm = 200
"""


def tx40_text() -> str:
    """The gears of the TX40, whose sixth motor also turns with the fifth joint."""
    rows = [[float(n == m) for m in range(6)] for n in range(6)]
    rows[5][4] = 1.0
    text = f'schema = 1\nname = "tx40"\ndescription = "gears only"\ncoupling = {rows}\n'
    gears = ((32, 0), (32, -math.pi / 2), (45, math.pi / 2), (-48, 0), (45, 0), (32, 0))
    for number, (gear, offset) in enumerate(gears, 1):
        text += JOINT.format(
            number=number,
            reduction=float(abs(gear)),
            direction=1 if gear > 0 else -1,
            offset=float(offset),
        )
    return text


@pytest.fixture
def log(tmp_path: Path) -> Path:
    t = np.arange(ROWS) / 1000.0
    q = np.sin(t)[:, None] * np.arange(1, 5) / 4.0
    tau = np.cos(t)[:, None] * np.arange(1, 5)
    np.savez(tmp_path / "log.npz", t=t, q=q, tau=tau)
    return tmp_path / "log.npz"


def test_a_recording_like_any_other(armature: Armature, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.h5"
    result = armature("import", str(log), "--robot", "laas4", "--out", str(out), "--json")
    assert (result.exit_code, result.err) == (0, "")
    facts = result.json
    assert facts["rows"] == ROWS
    assert facts["rate_hz"] == pytest.approx(1000.0)
    assert facts["taken"]["q_rad"] == {"source": "log.npz:q", "unit": "rad"}
    assert facts["files"][0]["sha256"] == hashlib.sha256(log.read_bytes()).hexdigest()

    with open_recording(out) as recording, np.load(log) as source:
        np.testing.assert_array_equal(recording["joint_position_rad"][:], source["q"])
        np.testing.assert_allclose(recording["joint_torque_nm"][:], source["tau"], rtol=1e-7)
        assert np.isnan(recording["joint_velocity_rad_s"][:]).all()
        assert np.isnan(recording["iq_a"][:]).all()
        assert recording.attributes["link"] == "import"
        assert recording.attributes["board_names"] == []
        assert recording.robot.name == "laas4"
        # Nobody commanded anything.
        assert {MODES[code] for code in np.unique(recording["joint_mode"][:])} == {"off"}
        assert {STATES[code] for code in np.unique(recording["state"][:])} == {"idle"}
        words, for_programs = recording.events
        assert words.kind == "import"
        assert "t_s from log.npz:t in s; q_rad from log.npz:q in rad" in words.text
        assert json.loads(for_programs.text)["files"] == facts["files"]

    (segment,) = read_segments(out)
    assert len(segment) == ROWS
    assert summarise(out).chosen == "import"
    rows = prepare(segment, choose_settings([segment])[0])
    assert len(rows) > 50
    info = armature("record", "info", str(out), "--json")
    assert info.json["samples"] == ROWS
    printed = armature("record", "info", str(out))
    assert printed.exit_code == 0
    assert "laas4, imported" in printed.out
    # No loop ran, there were no boards, and JSON is for programs.
    for word in ("boards", "loop timing", "import_facts", 'sha256":'):
        assert word not in printed.out


def test_for_people(armature: Armature, log: Path, tmp_path: Path) -> None:
    result = armature("import", str(log), "--robot", "laas4", "--out", str(tmp_path / "r.h5"))
    assert result.exit_code == 0
    printed = " ".join(result.out.split())  # lines break where the path is long
    for word in ("q_rad", "log.npz:q", "3000 samples at 1000 Hz over 3.0 s", "none missing"):
        assert word in printed


def test_jitter_of_time_stamps_is_printed(armature: Armature, tmp_path: Path) -> None:
    t = np.arange(ROWS) / 1000.0
    stamps = t + np.where(np.arange(ROWS) % 2, 1.0, -1.0) * 0.2e-3
    values = np.sin(t)[:, None] * np.ones(4)
    np.savez(tmp_path / "f.npz", t=stamps, q=values, tau=values)
    out = tmp_path / "r.h5"
    result = armature("import", str(tmp_path / "f.npz"), "--robot", "laas4", "--out", str(out))
    assert result.exit_code == 0
    assert "time stamps off by up to 0.2 ms" in " ".join(result.out.split())
    assert "0.2 periods (0.2 ms)" in result.err
    with open_recording(out) as recording:
        assert np.unique(np.diff(recording["t_ns"][:])).tolist() == [1_000_000]


def test_holes_become_gaps_and_invalid_rows(armature: Armature, tmp_path: Path) -> None:
    rows = [(n / 100.0, n * 1e-3, n * 2e-3) for n in range(1000)]
    rows[300] = (3.0, math.nan, 0.0)
    del rows[500:510]
    text = "\n".join(",".join(map(str, row)) for row in rows)
    (tmp_path / "f.csv").write_text(f"time,q1,tau1\n{text}\n")
    out = tmp_path / "r.h5"
    words = ("import", str(tmp_path / "f.csv"), "--robot", "bench1", "--out", str(out), "--json")
    result = armature(*words)
    assert (result.json["missing"], result.json["invalid_rows"]) == (10, 1)
    assert (result.json["holes"], result.json["span_s"]) == (1, pytest.approx(9.99))
    assert "1 of 990 rows" in result.err
    with open_recording(out) as recording:
        assert [(gap.first_seq, gap.count) for gap in recording.gaps] == [(500, 10)]
        assert not recording["joint_valid"][300, 0]
        assert recording["t_ns"][500] == 5_100_000_000
    first, second = read_segments(out, rows_min=100)
    assert (len(first), len(second)) == (500, 490)
    assert first.is_in_gap is not None
    assert np.flatnonzero(first.is_in_gap).tolist() == [300]


def test_a_span_has_its_holes(armature: Armature, tmp_path: Path) -> None:
    rows = [f"{n / 100},{n * 1e-3},{n * 2e-3}" for n in range(1000) if not 500 <= n < 700]
    (tmp_path / "f.csv").write_text("\n".join(["time,q1,tau1", *rows]))
    for words in ((), ("--resample",)):
        out = tmp_path / f"r{len(words)}.h5"
        result = armature(
            "import", str(tmp_path / "f.csv"), "--robot", "bench1", "--out", str(out), *words
        )
        printed = " ".join(result.out.split())
        assert "800 samples at 100 Hz over 10.0 s of bench1" in printed
        assert "200 missing (1 gap, 2 s)" in printed
        assert "2 s in 1 gap" in result.err


def test_times_may_be_ignored(armature: Armature, tmp_path: Path) -> None:
    rows = [f"{n // 10},{n * 1e-3},{n * 2e-3}" for n in range(1000)]
    (tmp_path / "f.csv").write_text("\n".join(["time,q1,tau1", *rows]))
    words = (
        "import",
        str(tmp_path / "f.csv"),
        "--robot",
        "bench1",
        "--out",
        str(tmp_path / "r.h5"),
    )
    refused = armature(*words)
    assert refused.exit_code == 1
    assert "[coarse-times]" in refused.err
    assert "--map t_s=none --rate HZ" in refused.err
    result = armature(*words, "--map", "t_s=none", "--rate", "100", "--json")
    assert result.exit_code == 0
    assert (result.json["rows"], result.json["rate_hz"]) == (1000, 100.0)
    assert "t_s" not in result.json["taken"]


def test_rows_units_references_and_resampling(armature: Armature, tmp_path: Path) -> None:
    t_ms = np.arange(1000) * 2.0 + np.random.default_rng(1).uniform(-0.9, 0.9, 1000)
    np.savetxt(
        tmp_path / "f.txt",
        np.column_stack([t_ms, np.degrees(t_ms * 1e-3), t_ms, 1e3 * t_ms]),
        delimiter=";",
    )
    out = tmp_path / "r.h5"
    words = f"--robot bench1 --out {out} --map t_s=1 --map q_rad=2 --map q_ref_rad=3 --map tau_nm=4"
    words += " --unit t_s=ms --unit q_rad=deg --unit q_ref_rad=mrad --unit tau_nm=mNm"
    words += " --rows 100:900 --delimiter ;"
    refused = armature("import", str(tmp_path / "f.txt"), *words.split(), "--json")
    assert refused.exit_code == 1
    assert "[uneven-times]" in refused.err
    assert "--resample" in refused.err
    assert not out.exists()
    result = armature(
        "import", str(tmp_path / "f.txt"), *words.split(), "--resample", "--rate", "500", "--json"
    )
    assert result.exit_code == 0
    assert result.json["is_resampled"]
    assert result.json["first_row"] == 100
    with open_recording(out) as recording:
        t_s = t_ms[100] * 1e-3 + recording.t_s
        np.testing.assert_allclose(recording["joint_position_rad"][:, 0], t_s, rtol=1e-6)
        np.testing.assert_allclose(recording["reference_position_rad"][:, 0], t_s, rtol=1e-6)
        np.testing.assert_allclose(recording["joint_torque_nm"][:, 0], t_s * 1e3, rtol=1e-6)


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        ("log.npz", 2, "--robot"),
        ("--robot laas4 --out r.h5", 2, "FILE"),
        ("log.npz --robot laas4 --out r.h5 --map q", 2, "--map q:"),
        ("log.npz --robot laas4 --out r.h5 --map x=q", 2, "--map x=q:"),
        ("log.npz --robot laas4 --out r.h5 --map q_rad=q --map q_rad=t", 2, "--map q_rad=t"),
        ("log.npz --robot laas4 --out r.h5 --unit q_rad=", 2, "--unit q_rad=:"),
        ("log.npz --robot laas4 --out r.h5 --rows 5", 2, "--rows 5:"),
        ("log.npz --robot laas4 --out r.h5 --rows 9:5", 2, "--rows 9:5:"),
        ("log.npz --robot laas4 --out r.h5 --rate 0", 2, "--rate 0:"),
        ("log.npz --robot laas4 --out r.h5 --rate nan", 2, "--rate nan:"),
        ("log.npz --robot laas4 --out r.h5 --delimiter ab", 2, "--delimiter 'ab'"),
        ("log.npz log.npz --robot laas4 --out r.h5", 2, "log.npz"),
        ("log.npz --robot laas5 --out r.h5", 2, "laas5"),
        ("log.npz --robot bench1 --out r.h5", 1, "[number-of-columns]"),
        ("log.npz --robot laas4 --out r.h5 --unit q_rad=furlong", 2, "--unit q_rad=furlong:"),
        ("log.npz --robot laas4 --out r.h5 --unit q_rad=1e13", 2, "--unit q_rad=1e13:"),
        ("log.npz --robot laas4 --out r.h5 --map q_rad=p", 2, "--map q_rad=p:"),
        ("log.npz --robot laas4 --out r.h5 --map q_rad=q:1", 2, "log.npz:q:1"),
        ("log.npz --robot laas4 --out r.h5 --rows 9000:9999", 2, "0 rows"),
        ("none.npz --robot laas4 --out r.h5", 1, "[no-such-file]"),
        ("log.npz --robot laas4 --out log.npz", 2, "--out log.npz:"),
        ("log.npz --robot laas4 --out no/where/r.h5", 2, "--out no/where/r.h5:"),
    ],
)
def test_misuse(armature: Armature, log: Path, words: str, code: int, text: str) -> None:
    with contextlib.chdir(log.parent):
        result = armature("import", *words.split())
    assert (result.exit_code, result.out) == (code, "")
    assert text in result.err
    assert sorted(path.name for path in log.parent.iterdir()) == ["log.npz"]


# --- all of it or nothing -------------------------------------------------------------------------


def test_the_file_of_another_is_left_alone(armature: Armature, log: Path, tmp_path: Path) -> None:
    (tmp_path / "r.h5.part").write_text("mine")
    out = tmp_path / "r.h5"
    assert armature("import", str(log), "--robot", "laas4", "--out", str(out)).exit_code == 0
    assert (tmp_path / "r.h5.part").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.npz", "r.h5", "r.h5.part"]
    assert out.stat().st_mode & 0o777 == (tmp_path / "r.h5.part").stat().st_mode & 0o777


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_behind_by_signals(
    armature: Armature, log: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def interrupted(*_: object) -> None:
        assert len(list(log.parent.iterdir())) == 2
        signal.raise_signal(number)

    monkeypatch.setattr(RecordingWriter, "append", interrupted)
    result = armature("import", str(log), "--robot", "laas4", "--out", str(log.parent / "r.h5"))
    assert (result.exit_code, result.out) == (130, "")
    assert list(log.parent.iterdir()) == [log]


def test_nothing_is_left_behind_on_a_full_disk(armature: Armature, log: Path) -> None:
    out = log.parent / "r.h5"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, before[1]))
    try:
        result = armature("import", str(log), "--robot", "laas4", "--out", str(out))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert result.exit_code == 1
    assert f"{out}: " in result.err
    assert "File too large" in result.err
    assert list(log.parent.iterdir()) == [log]


def test_one_of_several_at_a_time(
    armature: Armature, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, close = log.parent / "r.h5", RecordingWriter.close

    def overtaken(writer: RecordingWriter) -> None:
        close(writer)
        out.write_text("the other's")

    monkeypatch.setattr(RecordingWriter, "close", overtaken)
    result = armature("import", str(log), "--robot", "laas4", "--out", str(out))
    assert result.exit_code == 1
    assert f"{out}: " in result.err
    assert "[exists]" in result.err
    assert out.read_text() == "the other's"
    assert sorted(path.name for path in log.parent.iterdir()) == ["log.npz", "r.h5"]


def test_names_that_are_not_utf_8(armature: Armature, log: Path, tmp_path: Path) -> None:
    odd, out = tmp_path / os.fsdecode(b"bad\xff.npz"), tmp_path / os.fsdecode(b"ou\xff.h5")
    log.rename(odd)
    words = ("import", str(odd), "--robot", "laas4", "--out", str(out))
    result = armature(*words, "--json")
    assert result.exit_code == 0
    assert result.json["file"].endswith(r"/ou\udcff.h5")
    assert result.json["files"][0]["path"].endswith(r"/bad\udcff.npz")
    with open_recording(out) as recording:
        assert recording.attributes["recording"] == r"ou\udcff"
        assert r"q_rad from bad\udcff.npz:q in rad" in recording.events[0].text
    out.unlink()
    result = armature(*words)
    assert result.exit_code == 0
    assert r"bad\udcff.npz:q" in result.out


# --- public data ----------------------------------------------------------------------------------


@pytest.fixture
def tx40() -> Path:
    return data_folder("tx40_figaroh")


def test_the_tx40_as_its_readme_says(armature: Armature, tx40: Path, tmp_path: Path) -> None:
    robot, out = tmp_path / "tx40.toml", tmp_path / "tx40.h5"
    robot.write_text(tx40_text())
    words = f"--robot {robot} --out {out} --rate 5000 --side motor"
    words += " --map q_rad=pos_read_data.csv --map tau_nm=curr_data.csv --json"
    files = [str(tx40 / name) for name in ("pos_read_data.csv", "curr_data.csv")]
    result = armature("import", *files, *words.split())
    assert (result.exit_code, result.err) == (0, "")
    assert result.json["rows"] == 45_000

    p, c = (np.loadtxt(path, delimiter=",", skiprows=1) for path in files)
    to_motor = np.diag([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
    to_motor[5, 4] = 32.0
    offsets = np.array([0.0, -math.pi / 2, math.pi / 2, 0.0, 0.0, 0.0])
    q = np.linalg.solve(to_motor, p.T).T + offsets
    (segment,) = read_segments(out)
    np.testing.assert_allclose(segment.q_rad, q, atol=1e-12)
    np.testing.assert_allclose(segment.tau_nm, c @ to_motor, atol=1e-5)
    settings, notes = choose_settings([segment])
    assert 15.0 <= settings.cutoff_hz <= 30.0
    assert settings.velocity == "differentiated"
    assert any("none was measured" in note for note in notes)
    assert len(prepare(segment, settings)) > 500
