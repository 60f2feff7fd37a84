"""An encoder that dies, in motion and at rest: by true motion, until its motor has no current.

In motion: at most 1.5 times the speed before, or 0.5 rad/s above it, whichever is more; at rest,
and moved then or not, or led slowly: at most 2 rad/s.
"""

from __future__ import annotations

import itertools
import random

import pytest
from acceptance import IS_LONG
from dead_encoder import Dies, fate

pytestmark = [pytest.mark.chain, pytest.mark.acceptance]

PROFILES = ("arm", "uomodri", "udriver2")
SPEEDS = (0.3, -0.3, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0)
TOLD = (
    ("velocity", 0.02), ("velocity", -0.06), ("velocity", 0.1), ("velocity", -1.0),
    ("position", 0.3), ("position", -0.3), None,
)  # fmt: skip


def chosen(cases: list[Dies], some: list[Dies], count: int) -> list[Dies]:
    """Some of very many, always the same."""
    return random.Random(16).sample(cases, count) if IS_LONG else some


MOVING = [
    *(
        Dies(profile, joint, posture, "velocity", speed, after_ms=after_ms)
        for profile, joint, posture, speed, after_ms in itertools.product(
            PROFILES, range(4), ("hanging", "bent", "horizontal"), SPEEDS, (0, 100)
        )
        if (profile, posture) != ("uomodri", "horizontal")
    ),
    *(
        Dies("arm", joint, posture, "velocity", speed, has_model=False)
        for joint, posture, speed in itertools.product(range(4), ("hanging", "bent"), SPEEDS)
    ),
    *(
        Dies("arm", joint, posture, "play", speed, after_ms=0)
        for joint, posture, speed in itertools.product(range(4), ("hanging", "bent"), (0.5, -1.0))
    ),
]
SOME_MOVING = [
    Dies("arm", 0, "hanging", "velocity", 2.0),
    Dies("arm", 2, "bent", "velocity", -0.3),
    Dies("uomodri", 3, "hanging", "velocity", 1.0, after_ms=0),
    Dies("udriver2", 1, "hanging", "velocity", 4.0),
    Dies("arm", 3, "bent", "velocity", -0.5, has_model=False),
    Dies("arm", 1, "hanging", "play", 0.5, after_ms=0),
]


@pytest.mark.parametrize("case", chosen(MOVING, SOME_MOVING, 160), ids=str)
def test_in_motion(case: Dies) -> None:
    result = fate(case)
    assert result.stopped_ms is not None and result.stopped_ms <= 20
    assert result.code == "encoder-frozen" or case.speed_rad_s > 3.5  # near the speed's own limit
    assert result.fastest_rad_s <= result.bar_rad_s(case), result


RESTING = [
    Dies(profile, joint, posture, "at rest", then=then, after_ms=after_ms)
    for profile, joint, posture, then, after_ms in itertools.product(
        PROFILES, range(4), ("hanging", "bent", "horizontal"), TOLD, (50, 400, 1500, 5000)
    )
    if (profile, posture) != ("uomodri", "horizontal")
]
SOME_RESTING = [
    Dies("arm", 1, "horizontal", "at rest", after_ms=50),
    Dies("arm", 1, "horizontal", "at rest", after_ms=400),
    Dies("arm", 3, "bent", "at rest", after_ms=50),
    Dies("arm", 3, "bent", "at rest", then=("velocity", -1.0), after_ms=400),
    Dies("udriver2", 2, "bent", "at rest", then=("velocity", 0.1), after_ms=400),
    Dies("uomodri", 0, "hanging", "at rest", then=("position", 0.3), after_ms=400),
]


@pytest.mark.parametrize("case", chosen(RESTING, SOME_RESTING, 120), ids=str)
def test_at_rest(case: Dies) -> None:
    result = fate(case)
    assert result.fastest_rad_s <= result.bar_rad_s(case), result


SLOWLY = [
    Dies(profile, joint, posture, "velocity", speed, after_ms=after_ms)
    for profile, joint, posture, speed, after_ms in itertools.product(
        PROFILES, range(4), ("hanging", "bent"), (0.005, -0.02, 0.04, -0.07), (700, 1500)
    )
]
SOME_SLOWLY = [
    Dies("arm", 2, "bent", "velocity", -0.02, after_ms=1500),
    Dies("udriver2", 3, "bent", "velocity", 0.04, after_ms=700),
]


@pytest.mark.parametrize("case", chosen(SLOWLY, SOME_SLOWLY, 60), ids=str)
def test_led_slowly(case: Dies) -> None:
    """It cannot be told from a joint that sticks, until it is knocked at."""
    result = fate(case)
    assert result.stopped_ms is not None
    assert result.fastest_rad_s <= result.bar_rad_s(case), result


UNHOMED = [
    *(
        Dies(profile, joint, "hanging", "jog", speed, after_ms=after_ms, has_model=has_model)
        for profile, joint, speed, after_ms, has_model in itertools.product(
            PROFILES, (0, 2, 3), (0.25, -0.3), (0, 500), (True, False)
        )
    ),
    *(
        Dies(profile, joint, "hanging", "homing", after_ms=after_ms)
        for profile, joint, after_ms in itertools.product(
            PROFILES, range(4), (300, 570, 700, 1000, 1500, 3000)
        )
    ),
    *(
        Dies("arm", joint, "hanging", "jog", speed, after_ms=after_ms, has_model=has_model)
        for joint, speed, after_ms, has_model in itertools.product(
            (0, 2, 3), (0.02, -0.06), (0, 900), (True, False)
        )
    ),
]
"""A raised joint before it is homed may need all that gravity takes anywhere: not promised."""
SOME_UNHOMED = [
    Dies("arm", 3, "hanging", "jog", 0.3, after_ms=500),
    Dies("arm", 3, "hanging", "jog", 0.25, after_ms=0, has_model=False),
    Dies("udriver2", 0, "hanging", "jog", -0.3, after_ms=500, has_model=False),
    Dies("arm", 0, "hanging", "homing", after_ms=1500),
    Dies("arm", 2, "hanging", "homing", after_ms=700),
]


@pytest.mark.parametrize("case", UNHOMED if IS_LONG else SOME_UNHOMED, ids=str)
def test_before_homing(case: Dies) -> None:
    result = fate(case)
    assert result.stopped_ms is not None
    assert result.fastest_rad_s <= result.bar_rad_s(case), result
