"""Synthetic identification data: the 4-DoF arm on a Fourier motion, with a known θ and noise."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import signal

from daq.robot import Robot, load_robot
from estimation.excitation.fourier import FreeCoefficients, SampledMotion
from estimation.identification.data.factors import Factors
from estimation.identification.data.reduction import Reducer
from estimation.identification.estimators.bounds import Bounds, bounds_of
from estimation.identification.estimators.problem import Problem
from estimation.model.base import BaseParameters, find_base
from estimation.model.forward_dynamics import ForwardDynamics
from estimation.model.parameters import Parameters, cad_vector, choose_parameters
from estimation.model.position_law import PositionLaw
from estimation.model.regressor import Regressor
from estimation.model.simulation import Simulation, simulate_closed_loop
from estimation.recordings.segment import Segment
from estimation.signals.preparation import Prepared
from hw_mocks.plants.truth import Truth, draw_truth

FloatArray = NDArray[np.float64]

RATE_HZ = 100.0


@cache
def laas4() -> Robot:
    return load_robot("laas4")


@cache
def model_of(terms: tuple[str, ...] | None = None) -> tuple[Regressor, BaseParameters]:
    regressor = Regressor(laas4(), choose_parameters(laas4(), terms))
    return regressor, find_base(regressor)


def truth_vector(robot: Robot, truth: Truth, parameters: Parameters) -> FloatArray:
    """θ of a simulated arm."""
    theta = np.zeros(len(parameters))
    for index, (joint, true) in enumerate(zip(robot.joints, truth.joints, strict=True)):
        link, gear = true.link, joint.drive.gear_reduction
        assert link is not None
        inertia = link.inertia_kg_m2
        elements = (inertia.xx, inertia.xy, inertia.yy, inertia.xz, inertia.yz, inertia.zz)
        theta[parameters.link(index)] = [link.mass_kg, *link.first_moment_kg_m, *elements]
        drive = {
            "viscous": true.viscous_joint_nm_s_per_rad + true.viscous_motor_nm_s_per_rad * gear**2,
            "coulomb": true.coulomb_joint_nm + true.coulomb_motor_nm * gear,
            "drive_inertia": true.rotor_inertia_kg_m2 * gear**2,
        }
        for kind, value in drive.items():
            theta[parameters.of_kind(kind)[index : index + 1]] = value
    return theta


def true_theta(seed: int = 1, terms: tuple[str, ...] | None = None) -> FloatArray:
    return truth_vector(
        laas4(), draw_truth(laas4(), seed=seed, spread=0.15), model_of(terms)[0].parameters
    )


def fourier_motion(
    seed: int = 0,
    duration_s: float = 20.0,
    *,
    joints: int = 4,
    rate_hz: float = RATE_HZ,
    speed_max_rad_s: float = 3.0,
    moving: Sequence[int] | None = None,
) -> SampledMotion:
    """A random series of 5 harmonics of 0.1 Hz; joints that are not `moving` stand still."""
    generator = np.random.default_rng(seed)
    free = FreeCoefficients(5)
    series = free.series(
        0.1, generator.uniform(-0.5, 0.5, joints), generator.normal(size=(free.count, joints))
    )
    t_s = np.arange(round(duration_s * rate_hz)) / rate_hz
    series = series.scaled(speed_max_rad_s / float(np.abs(series.at(t_s).dq_rad_s).max()))
    if moving is not None:
        for joint in set(range(joints)).difference(moving):
            series.sine_rad[:, joint] = series.cosine_rad[:, joint] = 0.0
    return series.at(t_s)


def coloured(
    generator: np.random.Generator, shape: tuple[int, int], memory: float = 0.0
) -> FloatArray:
    """AR(1) noise of standard deviation 1 along the first axis."""
    white = generator.standard_normal(shape)
    if not memory:
        return white
    noise = np.empty(shape)
    state = white[0]
    for row, fresh in enumerate(white):
        state = memory * state + np.sqrt(1.0 - memory**2) * fresh
        noise[row] = state
    return noise


def prepared(
    motion: SampledMotion, tau_nm: FloatArray, *, use: NDArray[np.bool_] | None = None
) -> Prepared:
    return Prepared(
        source=Path("synthetic.h5"),
        period_s=float(motion.t_s[1] - motion.t_s[0]),
        t_s=motion.t_s,
        q_rad=motion.q_rad,
        dq_rad_s=motion.dq_rad_s,
        ddq_rad_s2=motion.ddq_rad_s2,
        tau_nm=tau_nm,
        tau_raw_nm=tau_nm,
        use=np.ones(tau_nm.shape, bool) if use is None else use,
    )


def simulated(
    theta: FloatArray,
    motion: SampledMotion,
    *,
    terms: tuple[str, ...] | None = None,
    noise_nm: float = 0.0,
    memory: float = 0.0,
    seed: int = 0,
) -> Prepared:
    """Torques of a θ along a motion, with noise."""
    regressor, _ = model_of(terms)
    tau = regressor(motion.q_rad, motion.dq_rad_s, motion.ddq_rad_s2) @ theta
    noise = coloured(np.random.default_rng(seed), (len(tau), tau.shape[1]), memory)
    return prepared(motion, tau + noise_nm * noise)


def factors_of(parts: Sequence[Prepared], terms: tuple[str, ...] | None = None) -> Factors:
    reducer = Reducer(*model_of(terms))
    for group, part in enumerate(parts):
        reducer.add(part, group)
    return reducer.factors()


def make_problem(
    *parts: Prepared,
    terms: tuple[str, ...] | None = None,
    bounds: Bounds | None = None,
    starts: int = 10,
    seed: int = 0,
) -> Problem:
    regressor, base = model_of(terms)
    return Problem(
        regressor=regressor,
        base=base,
        factors=factors_of(parts, terms),
        bounds=bounds_of(laas4()) if bounds is None else bounds,
        cad=cad_vector(laas4(), regressor.parameters),
        samples=lambda: iter(parts),
        starts=starts,
        seed=seed,
    )


@cache
def example(noise_nm: float = 0.05, seed: int = 1) -> Problem:
    """Twenty seconds of an arm that differs from CAD by 15 %."""
    return make_problem(simulated(true_theta(seed), fourier_motion(), noise_nm=noise_nm, seed=seed))


def position_law(motion: SampledMotion) -> PositionLaw:
    """The robot file's gains on a reference."""
    robot = laas4()
    gains = [joint.control.position for joint in robot.joints]
    reduction = np.array([joint.drive.gear_reduction for joint in robot.joints])
    constants = [robot.motor_of(joint).torque_constant_nm_per_a for joint in robot.joints]
    return PositionLaw(
        reference_rad=motion.q_rad,
        reference_rad_s=motion.dq_rad_s,
        kp_a_per_rad=np.array([gain.kp_a_per_rad for gain in gains]),
        kd_a_s_per_rad=np.array([gain.kd_a_s_per_rad for gain in gains]),
        ki_a_per_rad_s=np.array([gain.ki_a_per_rad_s for gain in gains]),
        feedforward_a=np.zeros(4),
        reduction=reduction,
        joint_nm_per_a=reduction * constants,
        limit_a=np.array([joint.limits.current_max_a for joint in robot.joints]),
        is_held=np.zeros(4, bool),
        velocity_lag_s=1.0 / (2.0 * np.pi * 100.0),
    )


@cache
def closed_loop(seed: int = 1, duration_s: float = 7.0) -> tuple[PositionLaw, Simulation]:
    """The true arm following a Fourier motion under the boards' law, at 1 kHz."""
    motion = fourier_motion(3, duration_s, rate_hz=1000.0)
    law = position_law(motion)
    arm = ForwardDynamics(laas4(), model_of()[0].parameters, true_theta(seed))
    return law, simulate_closed_loop(arm, law, motion.q_rad[0], motion.dq_rad_s[0], 1e-3)


def recorded(
    law: PositionLaw,
    motion: Simulation,
    *,
    angle_noise_rad: float = 0.0,
    speed_noise_rad_s: float = 0.0,
    torque_noise_nm: float = 0.0,
    seed: int = 0,
    has_gains: bool = True,
) -> Segment:
    """A simulated motion as if it had been measured: replies belong to the command before."""
    generator = np.random.default_rng(seed)
    motion = Simulation(*(values[:-1] for values in dataclasses.astuple(motion)))
    shape = motion.q_rad.shape

    def noise(size: float) -> FloatArray:
        return size * generator.standard_normal(shape)

    def low_passed(speed: FloatArray) -> FloatArray:
        # As boards tell it, whose filter has settled at the beginning.
        numerator, denominator = signal.bilinear([1.0], [law.velocity_lag_s, 1.0], fs=1000.0)
        start = signal.lfilter_zi(numerator, denominator)[:, np.newaxis] * speed[:1]
        return signal.lfilter(numerator, denominator, speed, axis=0, zi=start)[0]

    def gain(values: FloatArray) -> FloatArray | None:
        return np.broadcast_to(values, shape).copy() if has_gains else None

    return Segment(
        source=Path("simulated.h5"),
        period_s=1e-3,
        t_s=np.arange(shape[0]) * 1e-3,
        q_rad=motion.q_rad + noise(angle_noise_rad),
        dq_rad_s=low_passed(motion.dq_rad_s) + noise(speed_noise_rad_s),
        tau_nm=motion.tau_nm + noise(torque_noise_nm),
        reference_position_rad=law.reference_rad[1:],
        reference_velocity_rad_s=law.reference_rad_s[1:],
        kp_a_per_rad=gain(law.kp_a_per_rad),
        kd_a_s_per_rad=gain(law.kd_a_s_per_rad),
        ki_a_per_rad_s=gain(law.ki_a_per_rad_s),
        joint_names=tuple(joint.name for joint in laas4().joints),
        is_reference_held=law.is_held,
        velocity_lag_s=law.velocity_lag_s,
    )
