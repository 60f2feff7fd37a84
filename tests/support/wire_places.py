"""Motors at chosen places of their boards' wire, and what went over it near the wrap."""

from __future__ import annotations

import math

import numpy as np
from loop_rig import Rig

from firmware_protocol.profiles import PROFILES

WRAP_TURNS = {name: profile.behaviour.position_wrap_turns for name, profile in PROFILES.items()}


def put_on_wire(rig: Rig, turns: float, joint: int = 0) -> None:
    """Let a motor's position read so many turns from now on, without turning it."""
    encoder = rig.outputs[joint].encoder
    encoder._zero_rad = encoder.angle_rad - turns * math.tau
    encoder._place_origin()
    rig.step(5)


def wire_turns(rig: Rig, joint: int = 0) -> float:
    """What a motor's position reads on the wire, as last taken in."""
    axis = rig.axes[joint]
    return (axis.motor_position_rad - axis.motor_offset_rad) / math.tau


def true_rad_s(rig: Rig, joint: int = 0) -> float:
    """How fast a joint really is."""
    return rig.mock.plant.motor_velocity_rad_s[joint] / rig.axes[joint].motor_per_joint


def push(rig: Rig, speed_rad_s: float) -> None:
    """Push a joint of `bench1` by current alone, to a speed well below its limit."""
    per_joint = rig.axes[0].motor_per_joint
    current_a = math.copysign(0.3, speed_rad_s * per_joint)  # friction takes about half of it
    rig.mode("current", current_a)
    rig.until(lambda: true_rad_s(rig) / speed_rad_s >= 1.0, cycles=3000)
    rig.mode("current", 0.0)


def check_references(rig: Rig, joint: int = 0) -> None:
    """No command had a reference beyond the fence while there was Kp or Ki."""
    stiff = rig.wire(joint, "kp_a_per_rad") > 0.0
    if rig.axes[joint].has_integrator:
        stiff |= rig.wire(joint, "ki_a_per_rad_s") > 0.0
    reached = np.abs(rig.wire(joint, "motor_position_rad")[stiff])
    assert reached.size == 0 or reached.max() <= rig.axes[joint].wire.fence_rad + 1e-6
