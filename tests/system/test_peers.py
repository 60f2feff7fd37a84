"""Whatever recorder, subscribers and clients do: the loop goes on, and no sample is missing."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from acceptance import IS_LONG

from daq.recording import Recording, open_recording
from daq.robot.load import load_robot

pytestmark = [pytest.mark.compiler, pytest.mark.acceptance]

FROZEN_S = 10.0 if IS_LONG else 3.0
RANDOM_S = 60.0 if IS_LONG else 5.0
KILLS = 100 if IS_LONG else 5
PEER = Path(__file__).with_name("peer_process.py")


def start_peers(lab: Any, *kinds: tuple[str, ...]) -> list[Any]:
    """Peers, at work."""
    peers = [lab.start("python3", PEER, kind, lab.runtime, *rest) for kind, *rest in kinds]
    lab.wait_for(lambda: all(peer.out or not peer.is_running for peer in peers))
    assert all(peer.is_running for peer in peers), lab.said
    return peers


def check_run(lab: Any, result: Any, file: Path) -> None:
    """The loop kept its deadlines or counted them, and the recorder has every sample."""
    assert result.exit_code == 0
    summary = result.json
    assert summary["cycles"] + summary["skipped"] == round(summary["elapsed_s"] * 1000)
    assert (summary["samples"], summary["missing"]) == (summary["cycles"], 0)
    with open_recording(file) as recording:
        assert recording.gaps == ()
        assert np.array_equal(recording["seq"][:], np.arange(summary["cycles"]))


def test_a_frozen_recorder(lab: Any) -> None:
    file = lab.path / "r.h5"
    run = lab.start(*lab.run_words("--enable", "--record", file))
    lab.wait_for(lambda: (status := lab.status()).recorder and status.recorder.written)
    recorder = lab.process("record")
    os.kill(recorder, signal.SIGSTOP)
    before = lab.status()

    lab.wait_for(lambda: (lab.status().recorder_age_s or 0.0) > FROZEN_S + 0.2)
    during = lab.status()
    os.kill(recorder, signal.SIGCONT)
    lab.wait_for(lambda: (lab.status().recorder_age_s or 0.0) < 2.0)
    after = lab.wait_for_cycles(200)

    assert before.cycles < during.cycles < after.cycles
    assert during.state in ("calibrating", "ready", "active"), "no motor stops for a recorder"
    result = run.end()
    check_run(lab, result, file)
    with open_recording(file) as recording:
        events = [event for event in recording.events if event.kind == "recorder"]
    assert [event.severity for event in events] == ["info", "error", "info"]
    assert "60 s" in events[1].text
    assert events[1].text in result.err


@pytest.mark.timeout(3600)
def test_a_recorder_killed_again_and_again(lab: Any) -> None:
    """At any moment of its life: whoever comes next goes on where it was."""
    file = lab.path / "r.h5"
    run = lab.start(*lab.run_words("--record", file))
    chance = np.random.default_rng(5)
    lab.wait_for_cycles(100)
    for wait in chance.integers(1, 1200, KILLS):
        lab.wait_for_cycles(int(wait))
        killed = lab.process("record")
        os.kill(killed, signal.SIGKILL)
        lab.wait_for(lambda killed=killed: lab.process("record") != killed)

    result = run.end()
    check_run(lab, result, file)
    assert result.err.count("SIGKILL") == KILLS


def test_subscribers_and_clients_that_do_not_behave(lab: Any) -> None:
    """What keeps the gateway busy does not keep the loop busy: that one has no ZeroMQ."""
    file = lab.path / "r.h5"
    run = lab.start(*lab.run_words("--record", file))
    lab.wait_for_cycles(20)
    threads = Path(f"/proc/{lab.process('loop')}/task").glob("*/comm")
    assert not [name for name in map(Path.read_text, threads) if name.startswith("ZMQ")]
    peers = start_peers(lab, ("deaf",), ("deaf",), ("flooding",), ("silent",), ("subscribing",))
    os.kill(peers[1].process.pid, signal.SIGSTOP)

    for _ in range(3):
        # Others still get their answers.
        status = lab.wait_for_cycles(500)
    assert status.state == "idle"
    # What waited for too long on a busy machine was not done, and may be asked for again.
    lab.wait_for(lambda: lab.send("record", "mark", "still there").exit_code == 0)
    for peer in peers:
        peer.process.kill()

    check_run(lab, run.end(), file)
    with open_recording(file) as recording:
        assert [event.text for event in recording.events].count("still there") == 1


def test_a_gateway_that_is_killed_and_frozen(lab: Any) -> None:
    """The loop goes on, says so, and what nobody heard is recorded from the spool."""
    file = lab.path / "r.h5"
    run = lab.start(*lab.run_words("--enable", "--record", file))
    lab.wait_for(lambda: (status := lab.status()).recorder and status.recorder.written)
    before = lab.wait_for_state("active")

    killed = _gateway(lab)
    os.kill(killed, signal.SIGKILL)
    lab.wait_for(lambda: _gateway(lab) != killed)
    lab.wait_for_cycles(100)
    frozen = _gateway(lab)
    os.kill(frozen, signal.SIGSTOP)
    # It is not waited for: another one takes its place.
    lab.wait_for(lambda: _gateway(lab) != frozen)
    after = lab.wait_for_cycles(100)

    assert after.state == "active", "no motor stops for a client"
    assert after.cycles > before.cycles + 3000
    check_run(lab, run.end(), file)
    with open_recording(file) as recording:
        events = [event for event in recording.events if event.kind == "gateway"]
    assert [(event.source, event.severity) for event in events] == [
        ("restart", "warning"),
        ("silence", "error"),
        ("restart", "warning"),
        ("silence", "info"),
    ]


def _gateway(lab: Any) -> int:
    """The process that has the sockets: the younger one of two."""
    found: list[int] = []

    def is_there() -> bool:
        lines = lab.processes().items()
        found[:] = [number for number, line in lines if "daq.stream.gateway.keeper" in line]
        return len(found) == 2

    lab.wait_for(is_there)
    parents = {number: int(_stat(number)[1]) for number in found}
    (child,) = (number for number in found if parents[number] in found)
    return child


def _stat(number: int) -> list[str]:
    """State, parent and so on."""
    return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()


@pytest.mark.timeout(600)
def test_random_commands_from_three_clients(lab: Any) -> None:
    """Valid, malformed, out of limits, at the wrong time: nobody gets beyond the limits."""
    out = lab.path / "out"
    recorder = lab.start("armature", *lab.here("record", "--out", out))
    loop = lab.start(*lab.mock_words(), *lab.loop_words("--record", "random", "--enable"))
    lab.wait_for_state("active")
    if IS_LONG:
        lab.wait_for(lambda: lab.status().is_at_rest)
        lab.accept("home", "--wait")
    peers = start_peers(lab, *(("random", str(seed), str(RANDOM_S)) for seed in range(3)))
    results = [peer.wait(RANDOM_S + 60.0) for peer in peers]

    assert all(result.exit_code == 0 for result in results), lab.said
    answers = [json.loads(result.out.splitlines()[-1]) for result in results]
    for counts in answers:
        assert {"accepted", "malformed"} <= set(counts)
    assert {"out-of-limit", "unknown", "not-now"} <= set().union(*answers)
    status = lab.status()
    assert status.state in ("idle", "calibrating", "ready", "active", "stopping", "fault")
    assert lab.send("stop").exit_code == 0
    ended = loop.end()
    lab.wait_for((out / "random.h5").exists)
    assert recorder.end().exit_code == 0
    summary = ended.json
    assert summary["cycles"] + summary["skipped"] == round(summary["elapsed_s"] * 1000)
    with open_recording(out / "random.h5") as recording:
        assert recording.gaps == ()
        assert recording.sample_count == summary["cycles"]
        check_limits(recording)


def check_limits(recording: Recording) -> None:
    """What was commanded and what came of it."""
    robot = load_robot("laas4")
    limits = [joint.limits for joint in robot.joints]
    current_a = np.array([limit.current_max_a for limit in limits])
    speed_rad_s = np.array([limit.velocity_max_rad_s for limit in limits])
    low_rad = np.array([limit.position_min_rad for limit in limits])
    high_rad = np.array([limit.position_max_rad for limit in limits])
    assert (recording["isat_a"][:] <= current_a).all()
    assert (abs(recording["iq_ff_a"][:]) <= current_a + 1e-3).all()
    assert (abs(recording["reference_velocity_rad_s"][:]) <= speed_rad_s + 1e-3).all()
    is_powered = recording["command_mode"][:].all(axis=1)
    # Noise, and the steps of Isat: the monitor's margin. Without ES the back-emf drives what it
    # likes through the windings of a motor that its board brakes.
    is_driven = is_powered & np.roll(is_powered, 1) & np.roll(is_powered, 20)
    iq_a = np.nan_to_num(abs(recording["iq_a"][:][is_driven]))
    assert (iq_a <= 1.05 * current_a + 0.25).all()
    is_homed = recording["joint_is_homed"][:].astype(bool)
    reference_rad = recording["reference_position_rad"][:]
    is_inside = (low_rad - 1e-3 <= reference_rad) & (reference_rad <= high_rad + 1e-3)
    assert (is_inside | ~is_homed | ~is_powered[:, None]).all()
