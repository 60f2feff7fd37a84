"""`arm` integrates the position error; what becomes of the integral while Ki = 0 is not known."""

from __future__ import annotations

import pytest
from board_rig import ES, ON, Rig, hold

from daq.robot.description import Robot
from firmware_protocol.behaviour import IdleIntegral
from firmware_protocol.profiles import PROFILES

LSB_A = 2.0**-10
RESOLUTION_RAD_S = 2.0 * LSB_A


@pytest.fixture
def integrating(held_bench: Robot) -> Rig:
    """A held rotor on the board that integrates."""
    return hold(held_bench, "arm")


def ahead(rig: Rig, error_rad: float) -> dict[str, float]:
    """A reference that far from where the rotor stands."""
    return {"motor_position_rad": rig.look().motor_position_rad[0] + error_rad}


def integrated_rad_s(rig: Rig) -> float:
    """The integral, looked at with Ki = 1 and no error."""
    rig.run(3, mode=ON, ki_a_per_rad_s=1.0, **ahead(rig, 0.0))
    return float(rig.ask_again(mode=ON, ki_a_per_rad_s=1.0, **ahead(rig, 0.0)).iq_a[0])


def test_only_arm_has_an_integrator(integrating: Rig) -> None:
    for name, profile in PROFILES.items():
        names = [field.name for field in profile.command.fields]
        assert ("ki_a_per_rad_s" in names) == (name == "arm")
        assert bool(profile.behaviour.idle_integrals) == (name == "arm")
    assert integrated_rad_s(integrating) == pytest.approx(0.0, abs=RESOLUTION_RAD_S)
    integrating.run(200, mode=ON, ki_a_per_rad_s=4.0, **ahead(integrating, 2.0))
    assert integrated_rad_s(integrating) == pytest.approx(2.0 * 0.2, rel=0.02)
    # The other way it takes the same back.
    integrating.run(200, mode=ON, ki_a_per_rad_s=4.0, **ahead(integrating, -2.0))
    assert integrated_rad_s(integrating) == pytest.approx(0.0, abs=0.01)


def test_it_is_kept_without_the_gain_and_so_multiplied_by_the_present_one(
    integrating: Rig,
) -> None:
    integrating.run(50, mode=ON, ki_a_per_rad_s=4.0, **ahead(integrating, 2.0))
    for ki in (1.0, 5.0):
        fields = {"ki_a_per_rad_s": ki} | ahead(integrating, 0.0)
        integrating.run(3, mode=ON, **fields)
        iq_a = integrating.ask_again(mode=ON, **fields).iq_a[0]
        assert iq_a == pytest.approx(ki * 0.1, rel=0.05)


def test_the_integrator_holds_while_the_output_is_clamped(integrating: Rig) -> None:
    integrating.run(50, mode=ON, ki_a_per_rad_s=4.0, **ahead(integrating, 2.0))
    kept = integrated_rad_s(integrating)
    assert kept == pytest.approx(0.1, rel=0.05)
    # Clamped by the feed-forward: the error goes on, the integral does not.
    fields = {"ki_a_per_rad_s": 4.0, "iq_ff_a": 2.0, "isat_a": 2.0} | ahead(integrating, 2.0)
    integrating.run(300, mode=ON, **fields)
    assert integrating.ask_again(mode=ON, **fields).iq_a[0] == pytest.approx(2.0, abs=LSB_A)
    assert integrated_rad_s(integrating) == pytest.approx(kept, abs=0.01)


def test_a_clamped_integrator_does_not_wind_up(integrating: Rig) -> None:
    fields = {"ki_a_per_rad_s": 5.0, "isat_a": 1.0}
    integrating.run(500, mode=ON, **fields, **ahead(integrating, 3.0))
    # It ended where the clamp began.
    assert integrated_rad_s(integrating) == pytest.approx(1.0 / 5.0, rel=0.03)


@pytest.mark.parametrize(
    ("reading", "after_rad_s"),
    [(IdleIntegral.CLEARED, 0.0), (IdleIntegral.KEPT, 0.1), (IdleIntegral.RUNS_ON, 0.1 - 0.2)],
)
def test_while_ki_is_zero_it_is_cleared_or_kept_or_goes_on(
    held_bench: Robot, reading: IdleIntegral, after_rad_s: float
) -> None:
    assert reading in PROFILES["arm"].behaviour.idle_integrals
    rig = hold(held_bench, "arm", idle_integral=reading)
    # What it has gathered so far may be anything where it goes on: it does without being asked.
    before_rad_s = integrated_rad_s(rig)
    rig.run(50, mode=ON, ki_a_per_rad_s=4.0, **ahead(rig, 2.0))
    rig.run(100, mode=ON, iq_ff_a=0.5, **ahead(rig, -2.0))
    # Without Ki it is pure current control whatever the integral does.
    assert rig.ask_again(mode=ON, iq_ff_a=0.5, **ahead(rig, -2.0)).iq_a[0] == pytest.approx(
        0.5, abs=LSB_A
    )
    if reading is IdleIntegral.CLEARED:
        before_rad_s = 0.0
    assert integrated_rad_s(rig) - before_rad_s == pytest.approx(after_rad_s, abs=0.01)


@pytest.mark.parametrize(
    ("how", "reading"),
    list(zip(["EM1 dropped", "ES dropped", "an error"], IdleIntegral, strict=True)),
)
def test_the_integrator_is_cleared_when_the_motor_is_not_enabled(
    held_bench: Robot, reading: IdleIntegral, how: str
) -> None:
    rig = hold(held_bench, "arm", idle_integral=reading)
    rig.run(100, mode=ON, ki_a_per_rad_s=4.0, **ahead(rig, 2.0))
    if how == "EM1 dropped":
        rig.run(1, mode=ES, ki_a_per_rad_s=4.0)
    if how == "an error":
        rig.board.latch(7)
    rig.run(1)
    rig.run(310, mode=ON, ki_a_per_rad_s=0.5)
    assert integrated_rad_s(rig) == pytest.approx(0.0, abs=0.03)
