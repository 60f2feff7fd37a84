"""Isat, its zero, and each board's own maximum."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from board_rig import ES, IDLE, MODE, ON, Rig

from daq.robot.description import Robot

LSB_A = 2.0**-10
MakeRig = Callable[..., Rig]
NO_LIMIT_A = 31.0
"""More than this the feed-forward cannot ask for; the bus can drive it at standstill."""
MAXIMUM_A = {"arm": 20.0, "uomodri": 10.0, "udriver2": NO_LIMIT_A}


def start_iq_a(rig: Rig, iq_ff_a: float, isat_a: float) -> float:
    """The current right after it was asked for, before the rotor has any speed to speak of."""
    rig.ask(mode=ON, iq_ff_a=iq_ff_a, isat_a=isat_a)
    for _ in range(6):
        rig.step()
    return float(rig.ask(mode=ON, iq_ff_a=iq_ff_a, isat_a=isat_a).iq_a[0])


@pytest.fixture
def running(profile: str, rig: MakeRig) -> Rig:
    running = rig(profile, effects=IDLE)
    running.calibrate()
    return running


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("isat_a", [0.125, 1.5, 9.5])
def test_the_current_never_exceeds_isat(running: Rig, isat_a: float, sign: float) -> None:
    expected = pytest.approx(sign * isat_a, rel=1e-3, abs=LSB_A)
    assert start_iq_a(running, sign * NO_LIMIT_A, isat_a) == expected


def test_below_isat_nothing_is_changed(running: Rig) -> None:
    assert start_iq_a(running, 1.0, 1.125) == pytest.approx(1.0, abs=LSB_A)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("isat_a", [0.0, 31.875])
def test_the_board_maximum(running: Rig, profile: str, isat_a: float, sign: float) -> None:
    """Isat = 0 means it, and nothing raises it."""
    expected = pytest.approx(sign * MAXIMUM_A[profile], rel=2e-3)
    assert start_iq_a(running, sign * NO_LIMIT_A, isat_a) == expected


def test_each_motor_has_its_own_limit(profile: str, rig: MakeRig, arm4: Robot) -> None:
    """On the wire `udriver2` has them the other way round."""
    both = rig(profile, arm4, effects=IDLE, calibration_s=0.3)
    mode = ES | MODE["EM1"] | MODE["EM2"]
    both.calibrate(mode, isat_a=(0.5, 1.0))
    for _ in range(8):
        both.step()
        reply = both.ask(mode=mode, iq_ff_a=(3.0, -3.0), isat_a=(0.5, 1.0))
    assert reply.iq_a == pytest.approx((0.5, -1.0), rel=5e-3)


def test_the_clamp_acts_on_the_sum(held: Rig) -> None:
    fields = {"motor_position_rad": 3.0, "kp_a_per_rad": 2.0, "iq_ff_a": -5.0, "isat_a": 2.0}
    held.run(10, mode=ON, **fields)
    assert held.ask_again(mode=ON, **fields).iq_a[0] == pytest.approx(2.0 * 3.0 - 5.0, abs=0.02)
    fields["iq_ff_a"] = 5.0
    held.run(10, mode=ON, **fields)
    assert held.ask_again(mode=ON, **fields).iq_a[0] == pytest.approx(2.0, abs=LSB_A)
