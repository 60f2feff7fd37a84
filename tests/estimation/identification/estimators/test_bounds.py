"""What a robot file knows of links, and what gives way when it contradicts itself."""

from __future__ import annotations

import re
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from identification_examples import example, laas4
from identify_recordings import ARM_TEXT, text_without_links
from refusals import refused

from daq.robot import parse_robot
from estimation.errors import InfeasibleParametersError
from estimation.identification.estimators.bounds import CAD_MASS_FACTOR, Ellipsoid, bounds_of
from estimation.identification.estimators.constrained import estimate_cls2
from estimation.identification.estimators.relaxation import relax_bounds
from hw_mocks.plants.truth import draw_truth


def test_the_files_own_bounds() -> None:
    bounds = bounds_of(laas4())
    assert bounds.joint_names == ("joint1", "joint2", "joint3", "joint4")
    assert bounds.links[3].mass_kg == (0.0516, 0.3225)
    assert bounds.total_mass_kg == (0.9, 2.3)
    assert bounds.notes == ()


def test_boxes_and_ellipsoids_that_are_stated() -> None:
    box = "centre_of_mass_min_m = [0, -1, -2], centre_of_mass_max_m = [1, 2, 3]"
    ellipsoid = "ellipsoid_centre_m = [0.1, 0, 0], ellipsoid_semi_axes_m = [1, 2, 3]"
    text = ARM_TEXT.replace("mass_max_kg = 0.3225 }", f"{box}, {ellipsoid} }}")
    link = bounds_of(parse_robot(text, "new")).links[3]
    assert link.centre_m == ((0.0, -1.0, -2.0), (1.0, 2.0, 3.0))
    assert link.ellipsoid == Ellipsoid((0.1, 0.0, 0.0), (1.0, 2.0, 3.0))
    assert link.mass_kg == (0.0516, np.inf)


def test_half_a_total_is_a_bound_too() -> None:
    for gone, expected in (("min", (0.0, 2.3)), ("max", (0.9, np.inf))):
        text = re.sub(rf"total_mass_{gone}_kg = .*\n", "", ARM_TEXT)
        assert bounds_of(parse_robot(text, "new")).total_mass_kg == expected
    text = re.sub(r"total_mass_(min|max)_kg = .*\n", "", ARM_TEXT)
    assert bounds_of(parse_robot(text, "new")).total_mass_kg is None


def test_masses_without_bounds_stay_near_cad() -> None:
    text = re.sub(r"bounds = .*\n", "", ARM_TEXT, count=2)
    bounds = bounds_of(parse_robot(text, "new"))
    low, high = bounds.links[0].mass_kg or (0.0, 0.0)
    assert low * CAD_MASS_FACTOR == pytest.approx(0.276) == high / CAD_MASS_FACTOR
    (note,) = bounds.notes
    assert "joint1, joint2 " in note
    assert f" {CAD_MASS_FACTOR:g} times " in note


def test_what_nobody_knows_is_said_to_be_unknown() -> None:
    text = re.sub(r"bounds = .*\n", "", text_without_links())
    bounds = bounds_of(parse_robot(text, "new"))
    assert all(link.mass_kg is None and link.ellipsoid is None for link in bounds.links)
    (note,) = bounds.notes
    assert ", ".join(bounds.joint_names) in note


@settings(max_examples=15)
@given(seed=st.integers(0, 1000))
def test_the_ellipsoid_around_a_link_contains_its_centre_and_its_joints(seed: int) -> None:
    truth = draw_truth(laas4(), seed=seed, spread=0.25)
    joints = tuple(
        msgspec.structs.replace(joint, link=true.link)
        for joint, true in zip(laas4().joints, truth.joints, strict=True)
    )
    for link, joint in zip(
        bounds_of(msgspec.structs.replace(laas4(), joints=joints)).links, joints, strict=True
    ):
        assert joint.link is not None
        assert link.ellipsoid is not None
        middle, axes = np.array(link.ellipsoid.centre_m), np.array(link.ellipsoid.semi_axes_m)
        centre = np.array(joint.link.first_moment_kg_m) / joint.link.mass_kg
        for point in (np.zeros(3), centre):
            assert np.linalg.norm((point - middle) / axes) < 1.0


def test_bounds_that_contradict_each_other_give_way_and_then_agree() -> None:
    problem = replace(example(), bounds=replace(example().bounds, total_mass_kg=(0.0, 0.5)))
    with refused(InfeasibleParametersError, "contradicting-bounds", "total mass ≤ 0.5 kg"):
        estimate_cls2(problem)

    relaxed, notes = relax_bounds(problem)

    (note,) = notes
    # Which of them is a matter of taste; how much is not.
    assert re.search(r"(total mass ≤|mass of joint\d ≥) .* kg, .*0\.0948 kg", note)
    theta = estimate_cls2(relaxed).theta
    assert theta is not None
    assert 0.499 < theta[:40:10].sum() < 0.595
    assert relax_bounds(relaxed) == (relaxed, ())


def test_bounds_that_agree_stay() -> None:
    relaxed, notes = relax_bounds(example())
    assert relaxed is example()
    assert notes == ()
