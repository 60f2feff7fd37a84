"""Torque per current and turns per turn: methods of the description, and computed nowhere else."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from daq.robot import DrivenRobot, parse_robot, robot_text
from daq.robot.friction import FrictionShape

GEAR, EFFICIENCY = 13.7, 0.83
FACTORS = {"torque_constant_nm_per_a", "gear_reduction", "gear_efficiency", "direction"}
ROOT = Path(__file__).parents[3]
HOME = ("daq/robot/description.py", "daq/robot/driving.py")


@pytest.fixture(scope="module")
def odd() -> DrivenRobot:
    text = robot_text("laas4").replace("gear_reduction = 31.0", f"gear_reduction = {GEAR}", 1)
    changed = f"direction = -1\ngear_efficiency = {EFFICIENCY}"
    return parse_robot(text.replace("direction = 1", changed, 1), "odd").driven()


def test_a_joint_with_everything_odd(odd: DrivenRobot) -> None:
    joint = odd.joints[0]
    constant = 1.5 / math.sqrt(3.0) * 60.0 / (2.0 * math.pi) / odd.motor_of(joint).kv_rpm_per_v
    assert joint.motor_per_joint == -GEAR
    assert odd.nm_per_a(joint) == pytest.approx(-constant * GEAR * EFFICIENCY)
    assert joint.drive.torque_ratio == pytest.approx(GEAR * EFFICIENCY)
    assert joint.drive.inertia_ratio == pytest.approx(GEAR**2 * EFFICIENCY)
    assert joint.drive.joint_inertia_kg_m2 == pytest.approx(
        GEAR**2 * EFFICIENCY * joint.drive.rotor_inertia_kg_m2
    )
    other = odd.joints[1]
    assert odd.nm_per_a(other) == pytest.approx(
        odd.torque_constant_nm_per_a(other) * other.gear_reduction
    )


def test_power_is_the_same_on_either_side_but_for_the_losses(odd: DrivenRobot) -> None:
    joint = odd.joints[0]
    iq_a, joint_rad_s = 2.0, 0.7
    motor_w = odd.torque_constant_nm_per_a(joint) * iq_a * joint.motor_per_joint * joint_rad_s
    assert odd.nm_per_a(joint) * iq_a * joint_rad_s == pytest.approx(EFFICIENCY * motor_w)


def test_friction_of_both_sides_adds_up_at_the_joint(odd: DrivenRobot) -> None:
    drive = odd.joints[0].drive
    friction = drive.friction
    assert drive.joint_viscous_nm_s_per_rad == pytest.approx(
        GEAR**2 * EFFICIENCY * friction.viscous_motor_nm_s_per_rad
        + friction.viscous_joint_nm_s_per_rad
    )
    assert drive.joint_coulomb_nm == pytest.approx(
        GEAR * EFFICIENCY * friction.coulomb_motor_nm + friction.coulomb_joint_nm
    )


def products(tree: ast.AST) -> Iterator[set[str]]:
    """The factors that each product or quotient takes from a description."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
            yield {
                part.attr
                for part in ast.walk(node)
                if isinstance(part, ast.Attribute) and part.attr in FACTORS
            }


def test_nobody_else_multiplies_them() -> None:
    """The mock's physics are its own, so that a mistake here is not shared."""
    found = []
    for package in ("daq", "estimation", "tools"):
        for path in sorted((ROOT / package).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            text = path.read_text()
            if name in HOME or sum(factor in text for factor in FACTORS) < 2:
                continue  # parsing takes a while
            if any(len(factors) > 1 for factors in products(ast.parse(text))):
                found.append(name)
    assert found == []
    assert any(
        len(factors) > 1
        for name in HOME
        for factors in products(ast.parse((ROOT / name).read_text()))
    )


# --- the friction law -----------------------------------------------------------------------------


@pytest.mark.parametrize("speed", [-2.0, -0.01, 0.0, 0.03, 1.5])
@pytest.mark.parametrize("smooth", [None, 0.02])
def test_the_law_is_the_formula(speed: float, smooth: float | None) -> None:
    values = {"viscous": 0.3, "coulomb": 0.2, "offset": -0.05, "asymmetric": 0.1, "stribeck": 0.07}
    if smooth is None:
        sign = math.copysign(1.0, speed) if speed else 0.0
    else:
        sign = math.tanh(speed / smooth)
    expected = 0.3 * speed + 0.2 * sign - 0.05 + 0.1 * abs(speed)
    expected += 0.07 * sign * math.exp(-((speed / 0.05) ** 2))
    found = FrictionShape(0.05, smooth).torque_nm(values, np.array([speed]))
    np.testing.assert_allclose(found, [expected])


def test_a_term_that_is_no_friction_is_refused() -> None:
    with pytest.raises(ValueError, match="drive_inertia"):
        FrictionShape(0.05).column("drive_inertia", np.zeros(3))
