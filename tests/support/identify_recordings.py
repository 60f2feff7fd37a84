"""Recordings to identify from that take no time to make: torques of known parameters."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from identification_examples import fourier_motion
from older_formats import behaviour_in_1_1
from recording_maker import make_recording

from daq.robot import parse_robot, robot_text
from estimation.excitation.fourier import SampledMotion
from estimation.model.parameters import cad_vector, choose_parameters
from estimation.model.regressor import Regressor
from tools.running.mock_options import true_robot

MARK = "mock?seed=3&spread=0.25"
ARM_TEXT = robot_text("laas4")


def made_recording(
    path: Path,
    *,
    motion: SampledMotion | None = None,
    seed: int = 0,
    duration_s: float = 8.0,
    link: str = MARK,
    text: str = ARM_TEXT,
    noise_nm: float = 0.02,
    **options: Any,
) -> Path:
    """A Fourier motion of the arm that the link names (where it names none: of CAD's)."""
    robot = parse_robot(text, "made")
    joints = len(robot.joints)
    if motion is None:
        motion = fourier_motion(seed, duration_s, joints=joints, rate_hz=1000.0)
    regressor = Regressor(robot, choose_parameters(robot))
    theta = cad_vector(true_robot(link, robot) or robot, regressor.parameters)
    assert theta is not None
    tau = regressor(motion.q_rad, motion.dq_rad_s, motion.ddq_rad_s2) @ theta
    behaviour = options.setdefault("behaviour", behaviour_in_1_1("arm"))
    noise = np.random.default_rng(seed).standard_normal(tau.shape)
    columns = {
        "joint_position_rad": motion.q_rad,
        # As boards tell them: late by their filters' lag.
        "joint_velocity_rad_s": motion.dq_rad_s - behaviour.velocity_lag_s * motion.ddq_rad_s2,
        "joint_torque_nm": tau
        - behaviour.current_lag_s * np.gradient(tau, motion.t_s, axis=0)
        + noise_nm * noise,
    }
    return make_recording(path, columns, text=text, link=link, **options)


def two_joints_text() -> str:
    """The arm's file, cut off after its second joint."""
    head, first, second, *_ = ARM_TEXT.split("[[joints]]")
    head = re.sub(r"\n\[estimation\]\n(.+\n)+", "\n", head)
    text = "[[joints]]".join([head, first, second]).replace('name = "laas4"', 'name = "two"', 1)
    return re.sub(r"\[joints\.dh\]\n(.+\n)+|\[\[boards\]\]\nname = \"elbow\"\n(.+\n)+", "", text)


def text_without_links(*, total_mass_max_kg: float | None = None) -> str:
    """The arm as one that the loop cannot drive, of whose links only bounds are known."""
    text = re.sub(r"\[joints\.(link|drive|control|dh)\]\n(.+\n)+", "", ARM_TEXT)
    text = re.sub(r"\[\[boards\]\]\n(.+\n)+", "", text)
    text = re.sub(r"\[(motors\.\w+|bus|safety|timing|host)\]\n(.+\n)+", "", text)
    text = re.sub(r"current_max_a = .*\n|home_posture_rad = .*\n", "", text)
    if total_mass_max_kg is not None:
        text = re.sub(r"total_mass_min_kg = .*\n", "", text)
        text = re.sub(r"total_mass_max_kg = .*", f"total_mass_max_kg = {total_mass_max_kg}", text)
    return text.split("# Estimated vectors")[0]
