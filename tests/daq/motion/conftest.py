from __future__ import annotations

import pytest

from daq.robot import load_robot
from daq.robot.description import Robot


@pytest.fixture(scope="session")
def arm4() -> Robot:
    """The whole arm."""
    return load_robot("laas4")


@pytest.fixture(scope="session")
def bench() -> Robot:
    """One joint without a link."""
    return load_robot("bench1")
