"""Identified parameters in a robot file: read again, it has them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from acceptance import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from identify_recordings import ARM_TEXT, text_without_links

from daq.errors import ConfigError
from daq.robot import Robot, load_robot, parse_robot
from estimation.identification.output.identified_robot import identified_text, joint_friction
from estimation.model.parameters import Parameters, cad_vector, choose_parameters
from hw_mocks.plants.truth import draw_truth

TERMS = ("viscous", "coulomb", "drive_inertia")
CENTRE = "centre_of_mass_min_m = [0.2, -0.1, -0.1], centre_of_mass_max_m = [0.3, 0.1, 0.1]"


def written(
    theta: np.ndarray, text: str = ARM_TEXT, terms: tuple[str, ...] = TERMS
) -> tuple[Robot, Parameters]:
    robot = parse_robot(text, "old")
    parameters = choose_parameters(robot, terms)
    new = identified_text(text, robot, parameters, theta.tolist(), source="new")
    return parse_robot(new, "new"), parameters


def drawn_theta(seed: int, terms: tuple[str, ...] = TERMS, spread: float = 0.15) -> np.ndarray:
    """Links of some arm, and friction and rotors of whatever size."""
    robot = load_robot("laas4")
    parameters = choose_parameters(robot, terms)
    truth = draw_truth(robot, seed=seed, spread=spread)
    theta = np.random.default_rng(seed).uniform(0.001, 0.5, len(parameters))
    for joint, true in enumerate(truth.joints):
        assert true.link is not None
        inertia = true.link.inertia_kg_m2
        theta[parameters.link(joint)] = [
            *(true.link.mass_kg, *true.link.first_moment_kg_m),
            *(inertia.xx, inertia.xy, inertia.yy, inertia.xz, inertia.yz, inertia.zz),
        ]
    return theta


@settings(max_examples=examples(20))
@given(seed=st.integers(0, 10_000), efficiency=st.sampled_from([None, 0.7]))
def test_what_is_written_is_what_is_read(seed: int, efficiency: float | None) -> None:
    text = ARM_TEXT
    if efficiency is not None:
        text = re.sub(r"(gear_reduction = .*)", rf"\1\ngear_efficiency = {efficiency}", text)
    theta = drawn_theta(seed)
    robot, parameters = written(theta, text)
    found = cad_vector(robot, parameters)
    assert found is not None
    np.testing.assert_allclose(found, theta, rtol=1e-10, atol=1e-15)


def test_comments_beside_numbers_that_were_replaced_go() -> None:
    text = ARM_TEXT.replace("coulomb_joint_nm = 0.247 }", "coulomb_joint_nm = 0.247 } # bench", 1)
    text = text.replace("rotor_inertia_kg_m2 = 3e-5", "rotor_inertia_kg_m2 = 3e-5 # sheet", 1)
    robot = parse_robot(text, "old")
    parameters = choose_parameters(robot, TERMS)
    new = identified_text(text, robot, parameters, drawn_theta(1).tolist(), source="new")
    assert not re.search("# (bench|sheet)", new)
    assert len(re.findall("# identified\n", new)) == 2


def test_friction_stands_where_the_file_states_it() -> None:
    """Viscous at the motor, Coulomb at the joint: shares elsewhere must not count twice."""
    text = ARM_TEXT.replace(
        "coulomb_joint_nm = 0.247 }",
        "coulomb_joint_nm = 0.247, coulomb_motor_nm = 0.01, viscous_joint_nm_s_per_rad = 0.2 }",
    )
    theta = drawn_theta(1)
    robot, parameters = written(theta, text)
    found = cad_vector(robot, parameters)
    assert found is not None
    np.testing.assert_allclose(found, theta, rtol=1e-10, atol=1e-15)


def test_terms_that_the_model_lacks_stay_as_they_were() -> None:
    theta = drawn_theta(2, ())
    robot, _ = written(theta, terms=())
    for old, new in zip(load_robot("laas4").joints, robot.joints, strict=True):
        assert new.drive == old.drive
        assert new.link != old.link


def test_terms_that_a_file_has_no_place_for_are_left_out() -> None:
    terms = (*TERMS, "offset", "stribeck")
    robot, parameters = written(drawn_theta(3, terms), terms=terms)
    assert cad_vector(robot, parameters) is not None


def test_friction_that_drives_a_little_is_none() -> None:
    theta = drawn_theta(4)
    theta[40:] = -1e-12
    robot, _ = written(theta)
    for joint in robot.joints:
        assert joint.drive.friction.coulomb_joint_nm == 0.0
        assert joint.drive.rotor_inertia_kg_m2 == 0.0


@pytest.mark.parametrize("off", [1e-9, -1e-9])
@pytest.mark.parametrize(("bound", "element", "value"), [("min", 1, 0.2), ("max", 1, 0.3)])
def test_a_centre_at_its_bound_stays_inside(
    bound: str, element: int, value: float, off: float
) -> None:
    text = ARM_TEXT.replace("mass_max_kg = 1.385 }", f"mass_max_kg = 1.385, {CENTRE} }}")
    theta = drawn_theta(0, spread=0.0)
    theta[14:20] *= 3.0
    theta[10 + element] = theta[10] * (value + off)
    robot, _ = written(theta, text)
    link = robot.joints[1].link
    assert link is not None
    assert link.first_moment_kg_m[0] / link.mass_kg == pytest.approx(value, abs=1e-7)


@pytest.mark.parametrize("off", [1e-9, -1e-9])
@pytest.mark.parametrize("mass_kg", [0.0516, 0.3225])
def test_a_mass_at_its_bound_stays_inside(mass_kg: float, off: float) -> None:
    theta = drawn_theta(0, spread=0.0)
    theta[30:40] = [mass_kg * (1.0 + off), 0.0, 0.0, 0.0, 1e-3, 0.0, 1e-3, 0.0, 0.0, 1e-3]
    link = written(theta)[0].joints[3].link
    assert link is not None
    assert link.mass_kg == pytest.approx(mass_kg, rel=1e-8)


@pytest.mark.parametrize(
    ("element", "value"), [(30, 0.33), (30, -0.1), (10, 1.4), (34, -1e-3), (31, 1.0)]
)
def test_what_breaks_bounds_or_cannot_exist_is_refused(element: int, value: float) -> None:
    theta = drawn_theta(0, spread=0.0)
    theta[element] = value
    with pytest.raises(ConfigError) as caught:
        written(theta)
    assert caught.value.source == "new"
    assert any(f"joints[{element // 10}]" in problem for problem in caught.value.problems)


def test_an_arm_without_links_gets_them() -> None:
    theta = drawn_theta(5)
    robot, parameters = written(theta, text_without_links())
    found = cad_vector(robot, parameters)
    assert found is not None
    np.testing.assert_allclose(found[:40], theta[:40], rtol=1e-10, atol=1e-15)


def test_friction_at_joints() -> None:
    theta = drawn_theta(6)
    parameters = choose_parameters(load_robot("laas4"), TERMS)
    found = joint_friction(parameters, theta.tolist())
    assert found == {f"joint{n + 1}": (theta[40 + n], theta[44 + n]) for n in range(4)}
    none = choose_parameters(load_robot("laas4"), ())
    assert set(joint_friction(none, theta[:40].tolist()).values()) == {(0.0, 0.0)}
