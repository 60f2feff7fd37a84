"""What references do between two replies: computed, against the same simulated step by step."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.signal
from acceptance import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from daq.recording import BoardBehaviour
from daq.samples.columns import behaviour_of
from estimation.recordings.board_effects import held_delay_s
from estimation.recordings.references import (
    Commands,
    VelocityLoop,
    regular_response_s,
    unseen_current,
)
from estimation.types import FloatArray
from firmware_protocol.profiles import UOMODRI

STEP_S = 1e-6
PERIOD_S = 1e-3
KP = 0.17
HEAVY = VelocityLoop(
    kp_a_per_rad=KP, kd_a_s_per_rad=0.044, rad_s2_per_a=0.0, velocity_lag_s=1.59e-3
)


def board(wire_s: float = 34e-6, **changes: object) -> BoardBehaviour:
    return replace(behaviour_of(UOMODRI, wire_s=wire_s), **changes)  # type: ignore[arg-type]


def commands_at(sent_s: FloatArray, due_s: FloatArray, speed_rad_s: float) -> Commands:
    """Commands for a constant speed, sent now and then later than they were due."""
    return Commands(
        sent_s=sent_s,
        reference_rad=speed_rad_s * due_s,
        reference_rad_s=np.full(len(sent_s), speed_rad_s),
    )


def simulated_a(
    commands: Commands, behaviour: BoardBehaviour, speed_rad_s: float, rows: FloatArray
) -> FloatArray:
    """The same by brute force: the current µs by µs, low-passed, and looked at when latched."""
    t_s = np.arange(0.0, commands.sent_s[-1], STEP_S)
    acts_s = commands.sent_s + behaviour.command_delay_s
    number = np.maximum(np.searchsorted(acts_s, t_s, side="right") - 1, 0)
    reference_rad = commands.reference_rad[number]
    if behaviour.is_reference_advanced:
        reference_rad = reference_rad + speed_rad_s * (t_s - acts_s[number])
    current_a = KP * (reference_rad - speed_rad_s * t_s)
    share = -math.expm1(-STEP_S / behaviour.current_lag_s)
    filtered_a = scipy.signal.lfilter([share], [1.0, share - 1.0], current_a)
    at = np.round((commands.sent_s[rows] - behaviour.reply_age_s) / STEP_S).astype(int)
    passed = np.concatenate([[0.0], np.cumsum(current_a)])
    means_a = np.diff(passed[at]) / np.diff(at)
    return np.asarray(means_a - 0.5 * (filtered_a[at][1:] + filtered_a[at][:-1]))


@settings(max_examples=examples(40), deadline=None)
@given(
    lates=st.lists(
        st.one_of(st.just(0.0), st.floats(0.0, 0.9), st.floats(1.0, 6.0)), min_size=20, max_size=60
    ),
    speed_rad_s=st.floats(5.0, 200.0),
    wire_s=st.sampled_from([0.0, 34e-6, 136e-6]),
    is_advanced=st.booleans(),
)
def test_whenever_commands_come(
    lates: list[float], speed_rad_s: float, wire_s: float, is_advanced: bool
) -> None:
    """Frames that are due every millisecond, but come late or not at all."""
    behaviour = board(wire_s, is_reference_advanced=is_advanced)
    sent_s, due_s, now = [0.0], [0.0], 0
    for late in lates:
        now += 1 + int(late)
        # No two exchanges are closer together than the time that one takes.
        sent_s.append((now + min(late % 1.0, 0.9)) * PERIOD_S)
        due_s.append(now * PERIOD_S)
    commands = commands_at(np.array(sent_s) + PERIOD_S, np.array(due_s), speed_rad_s)
    rows = np.arange(10, len(sent_s) - 1)
    unseen = unseen_current(commands, behaviour, HEAVY, speed_rad_s, rows)
    expected_a = simulated_a(commands, behaviour, speed_rad_s, rows)
    lasts_s = np.diff(commands.sent_s[rows])
    # As the bench takes it: weighted by the way. One µs is what the simulation resolves.
    scale_a = KP * speed_rad_s * 1e-6
    assert np.sum(unseen.reference_a * lasts_s) / np.sum(lasts_s) == pytest.approx(
        float(np.sum(expected_a * lasts_s) / np.sum(lasts_s)), abs=1.5 * scale_a
    )
    np.testing.assert_array_equal(unseen.response_a, 0.0)


@pytest.mark.parametrize("wire_s", [0.0, 34e-6, 136e-6])
def test_regular_frames_give_the_formula(wire_s: float) -> None:
    behaviour = board(wire_s)
    sent_s = np.arange(200) * PERIOD_S
    commands = commands_at(sent_s, sent_s, 100.0)
    unseen = unseen_current(commands, behaviour, HEAVY, 100.0, np.arange(40, 200))
    early_s = behaviour.reply_age_s + behaviour.command_delay_s
    delay_s = held_delay_s(PERIOD_S, behaviour.current_lag_s, early_s)
    np.testing.assert_allclose(unseen.reference_a, KP * 100.0 * delay_s, rtol=1e-9)


@pytest.mark.parametrize(
    ("clock_hz", "measured_ms", "off_ms"),
    # PROTOCOL.md, on the firmware's own code. At 2 MHz its wire seems faster than bits by clock.
    [(math.inf, (0.31, 0.32), 0.0), (8e6, (0.285, 0.30), 0.007), (2e6, (0.21, 0.23), 0.032)],
)
def test_the_firmware_does_the_same(
    clock_hz: float, measured_ms: tuple[float, float], off_ms: float
) -> None:
    behaviour = board(8.0 * UOMODRI.frame_size / clock_hz)
    early_s = behaviour.reply_age_s + behaviour.command_delay_s
    c_ms = 1e3 * held_delay_s(PERIOD_S, behaviour.current_lag_s, early_s)
    assert measured_ms[0] - off_ms <= c_ms <= measured_ms[1]


@pytest.mark.parametrize(("age_max_s", "tick_s"), [(37e-6, 25e-6), (100e-6, 100e-6)])
def test_the_mean_of_ages_and_ticks_is_enough(age_max_s: float, tick_s: float) -> None:
    lag_s = board().current_lag_s
    early_s = 34e-6 + np.add.outer(np.linspace(0, age_max_s, 101), np.linspace(0, tick_s, 101))
    exact_s = np.mean([held_delay_s(PERIOD_S, lag_s, early) for early in early_s.ravel()])
    mean_s = held_delay_s(PERIOD_S, lag_s, 34e-6 + 0.5 * (age_max_s + tick_s))
    assert mean_s == pytest.approx(float(exact_s), abs=2e-7)


@pytest.mark.parametrize("periods", [(1,), (1, 1, 1, 2), (2, 3, 4, 6), (4,)])
def test_the_motor_responds(periods: tuple[int, ...]) -> None:
    """A rotor under the law, integrated every µs: what the references alone do not explain."""
    behaviour, speed_rad_s = board(), 100.0
    loop = replace(HEAVY, rad_s2_per_a=0.0276 / 1.2e-5)
    lasts = np.resize(periods, 400) * PERIOD_S
    sent_s = np.concatenate([[0.0], np.cumsum(lasts)])
    commands = commands_at(sent_s, sent_s, speed_rad_s)
    rows = np.arange(200, 400)
    unseen = unseen_current(commands, behaviour, loop, speed_rad_s, rows)
    t_s = np.arange(0.0, sent_s[-1], 5e-6)
    acts = np.searchsorted(sent_s + behaviour.command_delay_s, t_s, side="right") - 1
    r_rad = commands.reference_rad[np.maximum(acts, 0)] - speed_rad_s * t_s
    theta = omega = seen = filtered = 0.0
    currents, filtereds = np.empty(len(t_s)), np.empty(len(t_s))
    seen_share, share = (
        -math.expm1(-5e-6 / lag_s) for lag_s in (loop.velocity_lag_s, behaviour.current_lag_s)
    )
    for step, r in enumerate((r_rad - r_rad[0]).tolist()):
        seen += seen_share * (omega - seen)
        current = KP * (r - theta) - loop.kd_a_s_per_rad * seen
        omega += 5e-6 * loop.rad_s2_per_a * current
        theta += 5e-6 * omega
        filtered += share * (current - filtered)
        currents[step], filtereds[step] = current, filtered
    at = np.round((sent_s[rows] - behaviour.reply_age_s) / 5e-6).astype(int)
    passed = np.concatenate([[0.0], np.cumsum(currents)])
    true_a = np.diff(passed[at]) / np.diff(at) - 0.5 * (filtereds[at][1:] + filtereds[at][:-1])
    weights = np.diff(at) / np.sum(np.diff(at))
    found_a = float((unseen.reference_a + unseen.response_a) @ weights)
    response_a = float(unseen.response_a @ weights)
    assert found_a == pytest.approx(float(true_a @ weights), abs=4e-6 * KP * speed_rad_s)
    if periods == (1,):
        late_s = regular_response_s(PERIOD_S, behaviour, loop)
        assert response_a == pytest.approx(KP * speed_rad_s * late_s, rel=0.1, abs=1e-6)
