from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from board_rig import Rig, hold, with_coil, with_friction

from daq.robot import load_robot
from daq.robot.description import Robot
from firmware_protocol.profiles import PROFILES


@pytest.fixture(params=list(PROFILES))
def profile(request: pytest.FixtureRequest) -> str:
    """Every profile in turn."""
    return str(request.param)


@pytest.fixture(scope="session")
def bench() -> Robot:
    """One joint without a link; nothing is connected to motor 2."""
    return load_robot("bench1")


@pytest.fixture(scope="session")
def arm4() -> Robot:
    """Two boards with two motors each."""
    return load_robot("laas4")


@pytest.fixture(scope="session")
def held_bench(bench: Robot) -> Robot:
    """Friction holds the rotor up to 3.5 A; a calibration of 0.3 s still gets through."""
    return with_friction(bench, coulomb_joint_nm=3.0)


@pytest.fixture(scope="session")
def free_bench(bench: Robot) -> Robot:
    """Nothing slows the rotor."""
    return with_friction(bench, coulomb_joint_nm=0.0)


@pytest.fixture(scope="session")
def blocked_bench(bench: Robot) -> Robot:
    """No current turns the rotor."""
    return with_friction(bench, coulomb_joint_nm=1e3)


@pytest.fixture(scope="session")
def hot_bench(bench: Robot) -> Robot:
    """Windings that heat up within seconds."""
    return with_coil(bench, 0.69)


@pytest.fixture
def held(profile: str, held_bench: Robot) -> Rig:
    """A calibrated motor whose rotor friction holds: every term of the law stands still."""
    return hold(held_bench, profile)


@pytest.fixture
def rig(bench: Robot) -> Callable[..., Rig]:
    """Makes a board on the bench, of a profile: `rig("arm", effects=IDLE)`."""

    def make(profile: str, robot: Robot = bench, **options: Any) -> Rig:
        return Rig(robot, profile, **options)

    return make
