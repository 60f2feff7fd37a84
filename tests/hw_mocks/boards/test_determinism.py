"""Everything random follows from the seed, and each effect has a stream of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest
from board_rig import EM2, ON, Rig

from daq.robot.description import Robot
from hw_mocks.errors import MockConfigError
from hw_mocks.mock_robot import MockRobot
from hw_mocks.plants.effects import PRESETS

MakeRig = Callable[..., Rig]
DEFAULT = PRESETS["default"]


def replies(rig: Rig, ms: int, mode: int = ON) -> list[bytes]:
    """What a board says while its motor is calibrated and turned."""
    received = []
    for number in range(ms):
        ff = 0.4 if number % 600 < 300 else -0.4
        received.append(rig.board.transfer(rig.frame(mode=mode, iq_ff_a=(ff, -ff))))
        rig.wait()
    return received


def test_the_same_seed_gives_the_same_bytes(profile: str, rig: MakeRig) -> None:
    first = replies(rig(profile, seed=7, is_torn=True), 800)
    assert replies(rig(profile, seed=7, is_torn=True), 800) == first
    other = replies(rig(profile, seed=8, is_torn=True), 800)
    assert sum(a != b for a, b in zip(first, other, strict=True)) > 700


def test_the_arm_is_repeatable_too(rig: MakeRig, arm4: Robot) -> None:
    def run(seed: int) -> list[bytes]:
        return replies(rig("arm", arm4, seed=seed, calibration_s=0.2), 300, ON | EM2)

    assert run(3) == run(3)
    assert run(3) != run(4)


def test_switching_the_noise_off_changes_nothing_but_the_noise(profile: str, rig: MakeRig) -> None:
    """The echoes of `udriver2` come late at random too: at the same exchanges with and without."""
    noisy = rig(profile, seed=5, effects=DEFAULT)
    quiet = rig(profile, seed=5, effects=replace(DEFAULT, iq_noise_a=0.0))
    for a, b in zip(replies(noisy, 800), replies(quiet, 800), strict=True):
        with_noise, without = noisy.decode(a), quiet.decode(b)
        changed = {
            name
            for name in with_noise._fields
            if repr(getattr(with_noise, name)) != repr(getattr(without, name))
        }
        assert changed <= {"iq_a", "motor_torque_nm"}
        assert with_noise.iq_a[0] == pytest.approx(without.iq_a[0], abs=0.15)


def test_each_output_has_noise_of_its_own(rig: MakeRig, arm4: Robot) -> None:
    """What one motor is given does not shift the other's noise."""
    both = rig("arm", arm4)
    columns = list(zip(*(reply.iq_a for reply in both.run(200)), strict=True))
    assert columns[0] != columns[1]
    other_board = Rig(arm4, "arm", board=1)
    assert [reply.iq_a[0] for reply in other_board.run(200)] != list(columns[0])


def test_truth_is_never_cad_by_default(bench: Robot, arm4: Robot) -> None:
    for robot in (bench, arm4):
        for seed in range(5):
            truth = MockRobot(robot, seed=seed).truth
            for joint, true in zip(robot.joints, truth.joints, strict=True):
                assert true.rotor_inertia_kg_m2 != joint.drive.rotor_inertia_kg_m2
                if joint.link is not None:
                    assert true.link is not None
                    assert true.link.mass_kg != joint.link.mass_kg
                    assert true.link != joint.link
                else:
                    assert true.load_inertia_kg_m2 != joint.load_inertia_kg_m2


def test_without_spread_truth_is_cad(bench: Robot, arm4: Robot) -> None:
    for robot in (bench, arm4):
        for joint, true in zip(
            robot.joints, MockRobot(robot, spread=0.0).truth.joints, strict=True
        ):
            assert true.rotor_inertia_kg_m2 == joint.drive.rotor_inertia_kg_m2
            assert true.link == joint.link
            assert true.load_inertia_kg_m2 == (joint.load_inertia_kg_m2 or 0.0)


def test_the_description_stays_as_it_was(rig: MakeRig, arm4: Robot) -> None:
    before = msgspec.json.encode(arm4)
    mock = rig("uomodri", arm4, calibration_s=0.1)
    mock.run(200, mode=ON)
    assert mock.robot.robot is arm4
    assert msgspec.json.encode(arm4) == before


def test_a_profile_that_does_not_exist_is_refused(bench: Robot) -> None:
    with pytest.raises(MockConfigError) as refused:
        MockRobot(bench, profile="nonsense")
    assert refused.value.source == "board bench"
    assert "'nonsense'" in refused.value.problems[0]
