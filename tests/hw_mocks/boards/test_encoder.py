"""The encoder looks for index and rollover only where they can be: it must not miss any.

The turn counter wraps about the zero of the calibration, also where positions count from the index.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from firmware_protocol.profiles import ARM
from hw_mocks.boards.encoder import Encoder

INDEX_RAD = 2.5
BEHAVIOUR = replace(ARM.behaviour, position_wrap_turns=3.0)
WRAP_RAD = BEHAVIOUR.position_wrap_turns * math.tau
COUNTS_PER_TURN = 20_000


def swinging_rad(swings: int) -> list[float]:
    """A rotor that swings over many turns, and stands on the index now and then."""
    angles = 60.0 * np.sin(np.linspace(0.0, math.tau * swings, 20_000))
    angles[::50] = np.round(angles[::50] / math.tau) * math.tau + INDEX_RAD
    positions: list[float] = angles.tolist()
    return positions


@pytest.mark.parametrize("counts_per_turn", [COUNTS_PER_TURN, math.inf])
@pytest.mark.parametrize("swings", [2, 40])
@pytest.mark.parametrize("is_compensated", [False, True])
def test_every_event_is_seen(counts_per_turn: float, swings: int, is_compensated: bool) -> None:
    encoder = Encoder(
        counts_per_turn=counts_per_turn,
        index_rad=INDEX_RAD,
        behaviour=BEHAVIOUR,
        step_s=250e-6,
    )
    encoder.compensate_index(is_compensated)
    encoder.place(0.0)
    encoder.set_zero()
    index_rad = INDEX_RAD
    if math.isfinite(counts_per_turn):
        count_rad = math.tau / counts_per_turn
        index_rad = count_rad * round(INDEX_RAD / count_rad)
    toggles = rollovers = 0
    for rotor_rad in swinging_rad(swings):
        before_rad, toggle = encoder.angle_rad, encoder.index_toggle
        encoder.read(rotor_rad)

        turns = [math.floor((a - index_rad) / math.tau) for a in (before_rad, encoder.angle_rad)]
        has_passed = turns[0] != turns[1]
        assert (encoder.index_toggle != toggle) == has_passed
        ranges = [
            math.floor((a + WRAP_RAD) / (2.0 * WRAP_RAD)) for a in (before_rad, encoder.angle_rad)
        ]
        assert encoder.has_rolled_over == (ranges[0] != ranges[1])
        counted_rad = encoder.angle_rad - 2.0 * WRAP_RAD * ranges[1]
        # The first index that passes is the one of the swing's start.
        shift_rad = index_rad if is_compensated and encoder.is_index_found else 0.0
        assert abs(encoder.position_rad - (counted_rad - shift_rad)) < 1e-9
        toggles += has_passed
        rollovers += encoder.has_rolled_over
        encoder.has_rolled_over = False
    assert toggles > 20
    assert rollovers > 2
    assert encoder.is_index_found
