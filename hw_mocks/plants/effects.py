"""Effects of the mock's physics that the identification does not model.

Each effect is one number, zero when it is off. This module only states them; `actuator`,
`transmission` and the plants make them happen, and the board applies the two that concern its
measurements (`iq_noise_a`, `is_encoder_quantised`).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Final

from hw_mocks.errors import MockConfigError, suggest

STRIBECK_VELOCITY_RAD_S: Final = 0.05
"""Joint speed at which the extra breakaway friction has fallen to 1/e."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """Sizes of the effects; the fields' own defaults switch all of them off.

    Raises:
        MockConfigError: A value is not finite or lies outside its range.
    """

    iq_noise_a: float = 0.0
    """Noise on the measured quadrature current (rms)."""
    cogging_nm: float = 0.0
    """Amplitude of the cogging torque at the motor."""
    torque_ripple: float = 0.0
    """Amplitude of the ripple, relative to the motor's torque."""
    is_encoder_quantised: bool = False
    """Whether the measured position comes in whole encoder counts."""
    backlash_rad: float = 0.0
    """Total gap of the gear, at the joint."""
    torque_constant_drop: float = 0.0
    """Relative loss of the torque constant at the motor's highest current."""
    stribeck: float = 0.0
    """Extra friction at standstill, relative to Coulomb friction."""
    joint_resonance_hz: float = 0.0
    """Elasticity, as the frequency of the rotor on the gear's spring while the link is held.

    It states the stiffness independently of the posture; 0 is a rigid gear.
    """
    end_stop_rad: float = 0.0
    """Joint angle, to either side of where it starts, at which the output hits something.

    It comes to rest there at once, and can only turn back; 0 is a joint that turns on for ever.
    """
    gear_slip: float = 0.0
    """Part of each joint turn in which the gear does not grip: nothing at the output is felt."""

    @property
    def is_gear_rigid(self) -> bool:
        """Whether rotor and joint always turn as one."""
        return not (self.backlash_rad or self.joint_resonance_hz)

    def __post_init__(self) -> None:
        problems = [
            f"{name} = {getattr(self, name):g}: must lie between 0 and {highest:g}"
            for name, highest in _HIGHEST.items()
            if not 0.0 <= getattr(self, name) <= highest
        ]
        if problems:
            raise MockConfigError("mock effects", problems)


_HIGHEST: Final[dict[str, float]] = {
    "iq_noise_a": 5.0,
    "cogging_nm": 0.1,
    "torque_ripple": 0.5,
    "backlash_rad": 0.2,
    "torque_constant_drop": 0.9,
    "stribeck": 3.0,
    "joint_resonance_hz": 200.0,
    "end_stop_rad": 100.0,
    "gear_slip": 0.9,
}

BENCH_ONLY: Final = ("end_stop_rad", "gear_slip")
"""Effects that only a joint alone on the bench can have."""

_NONE: Final = Effects()
_DEFAULT: Final = Effects(
    iq_noise_a=0.020, cogging_nm=1e-3, torque_ripple=0.02, is_encoder_quantised=True
)
_TROUBLES: Final = dataclasses.replace(
    _DEFAULT,
    backlash_rad=math.radians(0.2),
    torque_constant_drop=0.20,
    stribeck=0.3,
    joint_resonance_hz=30.0,
)

_FLAGS: Final = {"1": True, "true": True, "0": False, "false": False}
PRESETS: Final[dict[str, Effects]] = {"none": _NONE, "default": _DEFAULT, "troubles": _TROUBLES}


def parse_effects(text: str) -> Effects:
    """Read effects as a command line states them: `default,backlash_rad=0.003,cogging_nm=0`.

    A preset comes first, then changes to it; changes alone are changes to `default`.

    Raises:
        MockConfigError: A name is unknown, a value unreadable or out of range.
    """
    first, *rest = (item.strip() for item in text.split(","))
    problems: list[str] = []
    if "=" in first:
        preset, changes = _DEFAULT, [first, *rest]
    else:
        if first not in PRESETS:
            problems.append(f"preset {first!r} is unknown{suggest(first, PRESETS)}")
        preset, changes = PRESETS.get(first, _DEFAULT), rest

    values = dataclasses.asdict(preset)
    for change in changes:
        name, equals, value = (part.strip() for part in change.partition("="))
        if name not in values:
            problems.append(f"effect {name!r} is unknown{suggest(name, values)}")
        elif not equals:
            problems.append(f"effect {name!r} has no value: write {name}=VALUE")
        else:
            is_flag = isinstance(values[name], bool)
            try:
                values[name] = _FLAGS[value.lower()] if is_flag else float(value)
            except (KeyError, ValueError):
                kind = "true or false" if is_flag else "a number"
                problems.append(f"{name} = {value!r}: must be {kind}")
    try:
        effects = Effects(**values)
    except MockConfigError as error:
        problems.extend(error.problems)
    if problems:
        raise MockConfigError(f"mock effects {text!r}", problems)
    return effects
