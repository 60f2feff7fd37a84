"""A fault on the robot leaves a recording of what was before it, whoever is there to make it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from daq.recording import open_recording
from daq.recording.states import State

pytestmark = pytest.mark.compiler


def saved(lab: Any, folder: Path) -> Path:
    """The one recording of a fault, once it is there and its journal is not."""
    lab.wait_for(lambda: [path.suffix for path in folder.glob("*")] == [".h5"])
    (file,) = folder.iterdir()
    return file


def test_a_run_that_ends_with_a_fault_and_nobody_records(lab: Any) -> None:
    lab.environment["XDG_STATE_HOME"] = str(lab.path / "state")
    run = lab.start(*lab.run_words("--enable", "--duration", "60", "--fault", "vanish:at=13"))
    result = run.wait()
    assert (result.exit_code, result.json["state"]) == (3, "fault")
    file = saved(lab, lab.path / "state" / "armature" / "faults")
    with open_recording(file) as recording:
        assert recording.gaps == ()
        states = recording["state"][:]
        (tripped, *_) = (states == State.STOPPING).nonzero()[0]
        assert 10_000 <= tripped < 10_040
        assert states[-1] == State.FAULT
        assert recording["seq"][-1] == result.json["cycles"] - 1
        assert recording.events[0].kind == "saved"
        assert "fault" in {event.kind for event in recording.events}
    assert lab.do("record", "info", file).exit_code == 0


def test_a_loop_that_stays_saves_one_of_two_faults_within_a_minute(lab: Any) -> None:
    """The second is not worth a file; the first was saved by a process that the loop asked for."""
    folder = lab.path / "faults"
    faults = ("stuck-low:at=5,for=0.5", "stuck-low:at=10,for=0.5")
    lab.start(*lab.mock_words(*faults), *lab.loop_words("--faults", folder))
    lab.wait_for_state("fault")
    file = saved(lab, folder)
    lab.wait_for(lambda: lab.send("reset").exit_code == 0)
    lab.wait_for_state("idle")
    lab.wait_for_state("fault")
    lab.wait_for(lambda: "this fault is not saved" in lab.said)
    lab.wait_for_cycles(1500)
    assert list(folder.iterdir()) == [file]
    with open_recording(file) as recording:
        assert recording.gaps == ()
        assert (recording["state"][-400:] == State.FAULT).all()


def test_a_recorder_saves_it_beside_its_recordings(lab: Any) -> None:
    out = lab.path / "out"
    recorder = lab.start("armature", *lab.here("record", "--out", out))
    lab.start(*lab.mock_words("stuck-low:at=5,for=0.5"), *lab.loop_words())
    lab.wait_for(lambda: lab.status().recorder is not None)
    lab.wait_for_state("fault")
    file = saved(lab, out / "faults")
    lab.wait_for(lambda: lab.status().recorder.fault_file == str(file))
    assert str(file) in lab.ask("status").out.replace("\n", "")
    with open_recording(file) as recording:
        assert recording.gaps == ()
        assert (recording["state"][-400:] == State.FAULT).all()
    assert recorder.end().exit_code == 0
    assert [path.name for path in out.iterdir()] == ["faults"]
