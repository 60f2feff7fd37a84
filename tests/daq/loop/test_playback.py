"""A trajectory: uploaded row by row, checked, approached, followed, left smoothly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from loop_rig import Rig, refused_for

from daq.recording.states import Mode, State
from daq.stream import messages as m
from daq.stream.errors import RefusedError
from firmware_protocol.profiles import PROFILES

HANGING_RAD = np.array([0.0, -math.pi / 2, 0.0, 0.0])
PERIOD_S = 1e-3


def swing(seconds: float = 2.0, amplitude_rad: float = 0.3, centre=HANGING_RAD) -> np.ndarray:
    """q and dq of all joints: from a posture there and back, at rest at both ends."""
    t = np.arange(0.0, seconds + PERIOD_S / 2, PERIOD_S)[:, None]
    w = math.tau / seconds
    ones = np.ones((1, len(centre)))
    q = centre + amplitude_rad * (1.0 - np.cos(w * t)) * ones
    return np.hstack([q, amplitude_rad * w * np.sin(w * t) * ones])


def homed_arm(hold: int = 300, **options: Any) -> Rig:
    return Rig("laas4", **options).enable().home_by_truth().hold(hold)


@pytest.mark.parametrize("profile", PROFILES)
def test_it_is_tracked_from_another_posture_and_ends_in_hold(profile: str) -> None:
    rig = homed_arm(profile=profile)
    # Without Ki an arm sags: by its gravity over Kp, 0.02 rad at joint2 there.
    sag_rad = 0.0 if rig.axes[1].has_integrator else 0.02
    rows = swing(1.0, 0.1, centre=HANGING_RAD + 0.3)
    rig.upload(rows)
    begun = rig.now
    answer = rig.send(m.PlayStart())
    assert answer == {"rows": 1001, "duration_s": pytest.approx(1.0)}
    assert all(track.mode is Mode.PLAY for track in rig.tracks)
    # The trajectory itself begins when the first row is reached.
    rig.until(
        lambda: np.allclose([t.reference[0] for t in rig.tracks], rows[0, :4], rtol=0, atol=1e-12)
    )
    first = rig.now
    assert first - begun > 100, "it was approached"
    references = []
    for _ in range(1000):
        references.append([track.reference[0] for track in rig.tracks])
        rig.step()
    assert np.allclose(references, rows[:1000, :4], rtol=0, atol=1e-9)
    true_rad = np.array(rig.joint_rad)[first : first + 1000]
    rms_rad = np.sqrt(np.mean((true_rad - rows[:1000, :4]) ** 2, axis=0))
    assert rms_rad.max() < 0.03 + sag_rad
    rig.step(200)
    assert not rig.cycle.control.is_playing
    assert all(track.mode is Mode.HOLD for track in rig.tracks)
    assert rig.state is State.ACTIVE
    assert rig.loop.status().trajectories == 1
    begun_event, over = [event for event in rig.cycle.events.latest if event.kind == "play"]
    assert "1.000 s" in begun_event.text
    assert over.severity == "info", "not left before its end"
    assert [track.reference[0] for track in rig.tracks] == pytest.approx(rows[-1, :4])
    rig.step(500)
    assert rig.mock.plant.joint_position_rad == pytest.approx(rows[-1, :4], abs=0.01 + sag_rad)


def test_approach_and_end_are_smooth() -> None:
    """Also of a trajectory that begins and ends at speed."""
    rig = homed_arm()
    rows = swing(1.0, 0.15, centre=HANGING_RAD + 0.2)[100:850]
    assert np.abs(rows[0, 4:]).max() > 0.4
    rig.upload(rows)
    begun = rig.now - 2
    rig.send(m.PlayStart())
    rig.until(lambda: not rig.cycle.control.is_playing)
    rig.step(100)
    for joint in range(4):
        position = rig.wire(joint, "motor_position_rad", begun)
        speed = rig.wire(joint, "motor_velocity_rad_s", begun)
        surprise = np.diff(position) - 0.5e-3 * (speed[1:] + speed[:-1])
        assert np.abs(surprise).max() < 2e-3
        # The robot file allows 40 rad/s² at the joint; the wire has its own steps.
        assert np.abs(np.diff(speed)).max() < 31 * 40 * PERIOD_S * 1.01 + 0.05
    assert np.abs(speed[-1]) == 0.0


@pytest.mark.parametrize("after", [300, 900], ids=["while approaching", "in the middle"])
def test_play_stop(after: int) -> None:
    rig = homed_arm()
    rig.upload(swing(centre=HANGING_RAD + 0.3))
    rig.send(m.PlayStart())
    rig.step(after)
    begun = rig.now - 2
    rig.send(m.PlayStop())
    assert all(track.mode is Mode.HOLD for track in rig.tracks)
    rig.until(lambda: all(track.is_at_rest for track in rig.tracks), cycles=800)
    for joint in range(4):
        position = rig.wire(joint, "motor_position_rad", begun)
        speed = rig.wire(joint, "motor_velocity_rad_s", begun)
        assert np.abs(np.diff(position) - 0.5e-3 * (speed[1:] + speed[:-1])).max() < 2e-3
    rig.step(800)
    assert max(abs(axis.velocity_rad_s) for axis in rig.axes) < 0.1
    rig.upload(swing())
    rig.send(m.PlayStart())
    assert rig.cycle.control.is_playing, "it can be played again"


def test_feed_forward_torque() -> None:
    rig = Rig("bench1").enable().hold()
    q_dq = swing(1.0, centre=np.array([rig.tracks[0].reference[0]]))
    torque_nm = 0.5 * np.sin(math.tau * np.arange(len(q_dq)) / 500.0)[:, None]
    rows = np.hstack([q_dq, torque_nm])
    rig.upload(rows, has_torque=True)
    rig.send(m.PlayStart())
    rig.until(lambda: not rig.cycle.control.is_playing)
    ff_a = rig.wire(0, "iq_ff_a")
    expected_a = torque_nm[:, 0] * rig.axes[0].amperes_per_nm
    # Found again on the wire, in its place among approach and stop.
    places = [k for k in range(len(ff_a) - 1000) if abs(ff_a[k + 125] - expected_a[125]) < 1e-3]
    assert any(np.allclose(ff_a[k : k + 1000], expected_a[:1000], atol=6e-4) for k in places)
    rig.step(600)
    assert rig.wire(0, "iq_ff_a")[-1] == 0.0


# --- refusals -------------------------------------------------------------------------------------

BEYOND = {
    "position": (400, 1, 6.4, "position-limit", ("joint2", "row 400", "6.4 rad", "6.26319 rad")),
    "just inside": (401, 0, 6.27, "position-limit", ("joint1", "row 401", "6.27 rad", "6.26319")),
    "position below": (0, 3, -6.5, "position-limit", ("joint4", "row 0", "-6.5 rad", "-6.26319")),
    "velocity": (700, 4, -4.6, "speed-limit", ("joint1", "row 700", "-4.6 rad/s", "4.5 rad/s")),
    "not a number": (301, 2, math.nan, "position-limit", ("joint3", "row 301", "nan")),
    "jump": (500, 2, 0.9, "position-jump", ("joint3", "row 500")),
}


def test_beyond_any_limit_is_refused_at_upload() -> None:
    rig = homed_arm(hold=1)
    for row, column, value, reason, named in BEYOND.values():
        rows = swing()
        rows[row, column] = value
        with refused_for("out-of-limit", reason, *named):
            rig.upload(rows)
        with refused_for("not-now", "missing-rows"):
            rig.send(m.PlayStart())
        # What was refused may be sent again, better.
        right = swing()
        for first in range(row // 300 * 300, len(right), 300):
            rig.send(m.PlayRows(first=first), right[first : first + 300].tobytes())
    rig.send(m.PlayStart())


def test_torque_beyond_the_motors_current_is_refused() -> None:
    rig = homed_arm(hold=1)
    rows = np.hstack([swing(), np.zeros((2001, 4))])
    rows[10, 10] = 30.0  # joint 3 makes 0.0276 N·m/A · 31 · 9 A = 7.7 N·m
    with pytest.raises(RefusedError, match=r"joint3.*row 10.*limit 9 A") as refusal:
        rig.upload(rows, has_torque=True)
    assert (refusal.value.code, refusal.value.reason) == ("out-of-limit", "torque-limit")


ROW = swing()[:1].tobytes()
UPLOADS = {
    "too early": (m.PlayRows(first=2), ROW, "wrong-row", "row 2 .*row 0"),
    "half a row": (m.PlayRows(first=0), ROW[:-8], "broken-rows", "56 bytes .* 64"),
    "nothing": (m.PlayRows(first=0), b"", "broken-rows", "0 bytes"),
    "too many": (m.PlayRows(first=0), ROW * 4, "too-many-rows", "4 rows .*3 of 3"),
}


def test_rows_that_do_not_belong() -> None:
    rig = homed_arm(hold=1)
    rig.send(m.PlayBegin(rows=3))
    for command, payload, reason, numbers in UPLOADS.values():
        with pytest.raises(RefusedError, match=numbers) as refusal:
            rig.send(command, payload)
        assert (refusal.value.code, refusal.value.reason) == ("malformed", reason)
    rig.send(m.PlayRows(first=0), ROW)
    with pytest.raises(RefusedError, match=r"row 0 .*row 1") as refusal:
        rig.send(m.PlayRows(first=0), ROW)
    assert refusal.value.reason == "wrong-row"
    with pytest.raises(RefusedError, match=r"^2 rows") as refusal:
        rig.send(m.PlayStart())
    assert refusal.value.reason == "missing-rows"


def test_a_new_announcement_replaces_the_old_one() -> None:
    rig = homed_arm(hold=1)
    rig.send(m.PlayBegin(rows=3))
    rig.send(m.PlayRows(first=0), ROW)
    rig.upload(swing())
    rig.send(m.PlayStart())
    with refused_for("not-now", "busy"):
        rig.send(m.PlayBegin(rows=3))
    rig.send(m.PlayStop())
    with refused_for("not-now", "not-announced"):
        rig.send(m.PlayStart())


def test_a_start_outside_reach_is_refused_and_can_be_repeated() -> None:
    """Too fast for where the joint is: nothing changes, and the upload is kept."""
    rig = Rig("bench1").enable()
    rig.upload(swing(centre=np.array([0.5])))
    rig.mode("current", 0.45)
    rig.until(lambda: abs(rig.axes[0].velocity_rad_s) > 3.0)
    rig.axes[0].velocity_rad_s = 7.0
    with refused_for("out-of-limit", "speed-limit", "joint1"):
        rig.send(m.PlayStart())
    assert rig.tracks[0].mode is Mode.CURRENT
    rig.step()
    rig.mode("hold")
    rig.step(800)
    rig.send(m.PlayStart())
    assert rig.tracks[0].mode is Mode.PLAY


def test_a_trajectory_near_the_speed_limit_is_refused() -> None:
    """4.1 and 4.7 rad/s, the limit is 5: what may be commanded is less than what trips."""
    rig = homed_arm(hold=1)
    rig.upload(swing(1.0, 0.65))
    with refused_for("out-of-limit", "speed-limit", "joint1", "4.5 rad/s"):
        rig.upload(swing(1.0, 0.75))
    with refused_for("not-now", "missing-rows"):
        rig.send(m.PlayStart())


def test_a_trajectory_keeps_the_acceleration_of_the_file() -> None:
    """40 rad/s² in the robot file: 0.4 rad back and forth in 0.5 s are 63, in 0.8 s 25."""
    rig = homed_arm(hold=1)
    rig.upload(swing(0.8, 0.4))
    with refused_for("out-of-limit", "speed-jump", "joint1", "per row"):
        rig.upload(swing(0.5, 0.4))


def test_a_trajectory_that_takes_too_much_torque_is_refused() -> None:
    """By the robot file's links: within every limit of motion, but not of the motors."""
    rig = homed_arm(hold=300)
    rows = swing(1.0, 0.65, centre=np.array([0.0, -0.65, 0.0, 0.0]))
    rig.upload(rows)
    with refused_for("out-of-limit", "torque-limit", "joint", "N·m", "row"):
        rig.send(m.PlayStart())
    assert not rig.cycle.control.is_playing
    assert all(track.mode is Mode.HOLD for track in rig.tracks)
