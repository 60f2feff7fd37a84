"""What leaves the loop: batches, their numbers, recordings, events, and samples that say it all."""

from __future__ import annotations

import numpy as np
import pytest
from loop_rig import Rig, corrupt, for_cycles, refused_for, silent

from daq.boards.board import Outcome
from daq.loop.schedule import Chore
from daq.recording.states import Mode, State
from daq.samples.batches import SAMPLES_PER_BATCH, Header, RecordingRequest
from daq.samples.columns import ColumnDecoder
from daq.stream import messages as m


def headers(rig: Rig) -> list[Header]:
    return [header for header, _ in rig.batches]


def columns(rig: Rig) -> dict[str, np.ndarray]:
    decoder = ColumnDecoder(rig.session)
    return decoder.decode(samples(rig))


def samples(rig: Rig) -> np.ndarray:
    decoder = ColumnDecoder(rig.session)
    return decoder.layout.view(b"".join(payload for _, payload in rig.batches))


def test_sequence_numbers_run_through() -> None:
    rig = Rig().enable().hold(300)
    rig.runner(duration_ns=33_000_000).run()
    counts = [header.count for header in headers(rig)]
    assert set(counts[:-1]) == {SAMPLES_PER_BATCH}
    assert 0 < counts[-1] <= SAMPLES_PER_BATCH
    assert [header.seq for header in headers(rig)] == [20 * n for n in range(len(counts))]
    assert samples(rig)["seq"].tolist() == list(range(sum(counts)))
    assert sum(counts) == rig.now == rig.loop.status().cycles
    t_ns = samples(rig)["t_ns"]
    assert (np.diff(t_ns) == 1_000_000).all()
    for header in headers(rig):
        assert header.t_ns == t_ns[header.seq + header.count - 1]
        assert header.session == "virtual"
        assert header.fingerprint == rig.session.fingerprint


def test_nothing_is_flushed_twice() -> None:
    rig = Rig()
    rig.step(20)
    rig.cycle.output.close_batch(0)
    rig.step(7)
    rig.cycle.output.close_batch(0)
    rig.cycle.output.close_batch(0)
    assert [(header.seq, header.count) for header in headers(rig)] == [(0, 20), (20, 7)]


# --- samples --------------------------------------------------------------------------------------


def test_samples_are_what_was_on_the_wire() -> None:
    rig = Rig("laas4").enable().home_by_truth().hold(100)
    rig.mode("velocity", 0.2, -0.2, 0.2, -0.2)
    rig.step(195)
    rig.cycle.output.close_batch(0)
    rows = samples(rig)
    for board, link in enumerate(rig.links):
        assert [row.tobytes() for row in rows[f"command_{board}"]] == link.sent
        assert [row.tobytes() for row in rows[f"reply_{board}"]] == link.received


def test_columns_are_the_loops_own_values() -> None:
    """Angles, modes and states decoded from samples, against what the loop thought meanwhile."""
    rig = Rig("laas4").enable().home_by_truth().hold(100)
    rig.mode("velocity", 0.2, -0.2, 0.2, -0.2)
    seen = []
    for _ in range(200):
        rig.step()
        axes = rig.axes
        seen.append(
            [
                [axis.position_rad for axis in axes],
                [axis.velocity_rad_s for axis in axes],
                [axis.nm_per_a * axis.iq_a for axis in axes],
            ]
        )
    first = rig.now - 200
    rig.cycle.output.close_batch(0)
    decoded = columns(rig)
    positions, speeds, torques = np.array(seen).transpose(1, 0, 2)
    assert np.allclose(decoded["joint_position_rad"][first:], positions, rtol=0, atol=1e-9)
    assert np.allclose(decoded["joint_velocity_rad_s"][first:], speeds, rtol=0, atol=1e-9)
    assert np.allclose(decoded["joint_torque_nm"][first:], torques, rtol=0, atol=1e-9)
    assert (decoded["joint_is_homed"][first:] == 1).all()
    assert (decoded["joint_is_homed"][:100] == 0).all()
    assert (decoded["joint_mode"][first:] == Mode.VELOCITY).all()
    assert decoded["state"][0] == State.IDLE
    assert decoded["state"][-1] == State.ACTIVE
    # The reference of the next cycle is prepared in this one.
    references = [track.reference[0] for track in rig.tracks]
    rig.step()
    rig.cycle.output.close_batch(0)
    assert np.allclose(columns(rig)["reference_position_rad"][-1], references, atol=1e-6)


def test_a_reply_that_could_not_be_used_is_marked() -> None:
    rig = Rig("laas4").enable().hold(50)
    begun = rig.now
    rig.links[0].tamper = for_cycles(3, corrupt)
    rig.links[1].tamper = for_cycles(2, silent)
    rig.step(10)
    rig.cycle.output.close_batch(0)
    decoded = columns(rig)
    outcome = decoded["board_outcome"][begun : begun + 4].T.tolist()
    assert outcome[0][:3] == [Outcome.CORRUPT] * 3
    assert outcome[1][:2] == [Outcome.SILENT] * 2
    assert decoded["joint_valid"][begun : begun + 4].tolist() == [
        [0, 0, 0, 0],
        [0, 0, 0, 0],
        [0, 0, 1, 1],
        [1, 1, 1, 1],
    ]
    assert np.isnan(decoded["joint_position_rad"][begun]).all()
    assert rig.loop.status().corrupt == 3


def test_a_device_that_failed_has_no_exchange() -> None:
    rig = Rig(faults=["vanish:at=0.02"])
    rig.step(40)
    assert columns(rig)["board_outcome"][19:, 0].tolist() == [255] * 21
    assert rig.state is State.FAULT


# --- recordings -----------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [0, 1, 7, 19, 20, 33])
@pytest.mark.parametrize("length", [1, 13, 20, 47])
def test_recordings_begin_and_end_with_a_batch(start: int, length: int) -> None:
    rig = Rig()
    rig.step(start)
    answer = rig.send(m.RecordStart(name="take"))
    assert rig.loop.status().recording == "take"
    first_seq = -(-start // 20) * 20
    assert answer == {"number": 1, "first_seq": first_seq, "has_recorder": False}
    rig.step(length)
    stopped = rig.now
    assert rig.send(m.RecordStop()) == {"recording": "take"}
    assert rig.loop.status().recording == ""
    rig.step(60)
    on = [header for header in headers(rig) if header.recording is not None]
    if not on:
        assert stopped <= answer["first_seq"]
        return
    request = RecordingRequest(number=1, name="take", first_seq=answer["first_seq"])
    assert {header.recording for header in on} == {request}
    assert on[0].seq == request.first_seq
    last = on[-1].seq + on[-1].count
    # It ends with the batch that was being collected.
    assert stopped <= last <= stopped + 20
    assert [header.seq for header in on] == list(range(request.first_seq, last, 20))


def test_one_recording_after_the_other_in_the_same_batch() -> None:
    rig = Rig()
    rig.send(m.RecordStart(name="one"))
    rig.step(25)
    rig.send(m.RecordStop())
    rig.send(m.RecordStart(name="two"))
    assert rig.loop.status().recording == "two"
    with refused_for("not-now", "recording", "two"):
        rig.send(m.RecordStart(name="three"))
    rig.step(40)
    names = [header.recording.name if header.recording else None for header in headers(rig)]
    assert names == ["one", "one", "two"]
    assert headers(rig)[2].recording == RecordingRequest(number=2, name="two", first_seq=40)
    rig.send(m.RecordStop())
    with refused_for("not-now", "not-recording"):
        rig.send(m.RecordStop())
    rig.step(40)
    assert headers(rig)[-1].recording is None


def test_a_recording_without_a_name() -> None:
    rig = Rig()
    rig.send(m.RecordStart())
    rig.step(20)
    assert rig.loop.status().recording == "recording 1"
    assert headers(rig)[0].recording == RecordingRequest(number=1, name="", first_seq=0)


def test_the_stop_at_the_end_is_recorded() -> None:
    rig = Rig().enable().hold(50)
    rig.send(m.RecordStart(name="take"))
    rig.runner(duration_ns=100_000_000).run()
    decoded = columns(rig)
    assert decoded["state"][-1] == State.IDLE
    assert (decoded["state"] == State.STOPPING).sum() in (299, 300)
    assert headers(rig)[-1].recording is not None


# --- events ---------------------------------------------------------------------------------------


def test_events_travel_with_the_batch_of_their_sample() -> None:
    rig = Rig().enable().hold(80)
    marked = rig.send(m.RecordMark(text="look here"))
    rig.step(100)
    for header in headers(rig):
        for event in header.events:
            assert header.seq <= event.seq < header.seq + header.count
            assert event.t_ns == (event.seq + 1) * 1_000_000
    texts = {event.text: event for header in headers(rig) for event in header.events}
    assert texts["look here"].seq == marked["seq"]
    assert texts["look here"].kind == "mark"
    changes = [event.text for event in rig.events if event.kind == "state"]
    assert [text.partition(":")[0] for text in changes] == [
        "idle → calibrating",
        "calibrating → ready",
        "ready → active",
    ]


def test_a_flood_of_events_is_cut() -> None:
    rig = Rig()
    for number in range(500):
        rig.send(m.RecordMark(text=f"mark {number}"))
    rig.step(20)
    (header,) = headers(rig)
    assert len(header.events) == 200
    assert len(rig.loop.status().events) == 20


# --- the recorder's reports -----------------------------------------------------------------------


def test_a_recorder_that_falls_silent_is_reported_and_stops_nothing() -> None:
    rig = Rig().enable().hold(50)
    rig.cycle.schedule[Chore.HOUSEKEEPING] = rig.loop.recorder.check
    report = m.RecorderReport(state="recording", written=5)
    rig.send(m.Report(report=report))
    rig.step(500)
    assert [event.severity for event in rig.events_of("recorder")] == ["info"]
    rig.step(4000)
    _, silence = rig.events_of("recorder")
    assert (silence.severity, "3.0 s" in silence.text) == ("error", True)
    assert rig.state is State.ACTIVE
    assert rig.loop.status().recorder_age_s == pytest.approx(4.5, abs=0.01)
    rig.send(m.Report(report=report))
    severities = [event.severity for event in rig.events_of("recorder")]
    assert severities == ["info", "error", "info"]


def test_what_the_recorder_complains_about() -> None:
    rig = Rig()
    rig.send(m.Report(report=m.RecorderReport(state="recording")))
    rig.send(m.Report(report=m.RecorderReport(state="waiting", problem="disk full", missing=40)))
    rig.send(m.Report(report=m.RecorderReport(state="waiting", problem="disk full", missing=40)))
    rig.send(m.Report(report=m.RecorderReport(state="recording", missing=40)))
    events = rig.events_of("recorder")
    assert [event.severity for event in events] == ["info", "error", "error", "info"]
    assert "disk full" in events[1].text and "40 " in events[2].text
