"""A recording of the mock says which one it was; its truth can be drawn again."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daq.robot import load_robot
from hw_mocks.plants.truth import draw_truth
from tools.running.mock_options import mark_of, true_robot

ARM = load_robot("laas4")


@given(
    seed=st.integers(0, 10**18 - 1),
    spread=st.floats(0.0, 1.0),
    link=st.sampled_from(["mock", "spy+mock", "mock+spi", "mock+serial:///dev/pts/3?baud=2000000"]),
)
def test_a_mark_leads_back_to_the_truth(seed: int, spread: float, link: str) -> None:
    truth = draw_truth(ARM, seed=seed, spread=spread)

    robot = true_robot(link + mark_of(truth), ARM)

    assert robot is not None
    for joint, true, cad in zip(robot.joints, truth.joints, ARM.joints, strict=True):
        assert joint.link == true.link
        assert joint.drive.rotor_inertia_kg_m2 == true.rotor_inertia_kg_m2
        assert joint.drive.friction == cad.drive.friction
    assert msgspec.structs.replace(robot, joints=ARM.joints) == ARM


def test_without_spread_the_truth_is_cad() -> None:
    assert true_robot("mock?seed=3&spread=0.0", ARM) == ARM


@pytest.mark.parametrize(
    "link",
    [
        *("", "mock", "spi", "import", "serial:///dev/ttyUSB0?baud=2000000"),
        *("spi?seed=1&spread=0.25", "serial:///dev/mock?seed=1&spread=0.25"),
        *("mock?seed=1", "mock?spread=0.25", "mock?seed=&spread=", "mock?seed=-1&spread=0.25"),
        *("mock?seed=1.5&spread=0.25", "mock?seed=1&spread=1.2.3", "mock?seed=1&spread=e"),
        *("mock?seed=1&spread=-0.1", "mock?seed=1&spread=1.5", "mock?seed=1&spread=1e-"),
        *("mock?seed=1&spread=nan", "mock?seed=1&spread=inf", "mock?seed=1&spread=0.25\n"),
        *("mock?seed=1&spread=0.25 ", f"mock?seed={10**40}&spread=0.25", "mock?spread=0.25&seed=1"),
    ],
)
def test_other_recordings_have_no_truth(link: str) -> None:
    assert true_robot(link, ARM) is None


@given(text=st.text("0123456789.e+-", max_size=20))
def test_no_mark_ends_in_an_exception(text: str) -> None:
    true_robot(f"mock?seed=1&spread={text}", ARM)
    true_robot(f"mock?seed={text}&spread=0.25", ARM)
