"""The friction law of a joint, stated once for all but the mock, which has physics of its own.

```
τ_f(v) = fv·v + fc·σ(v) + off + fva·|v| + fst·σ(v)·exp(−(v/v_s)²)
```

σ is the sign of the speed, or tanh(v/v₀) where a step will not do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FrictionShape:
    """How the terms of the law depend on speed.

    Attributes:
        stribeck_velocity_rad_s: v_s: at this speed 37 % of Stribeck's friction are left.
        smooth_sign_velocity_rad_s: v₀; None for a step.
    """

    stribeck_velocity_rad_s: float
    smooth_sign_velocity_rad_s: float | None = None

    def sign(self, speed_rad_s: FloatArray) -> FloatArray:
        """Return σ, any shape."""
        smooth_rad_s = self.smooth_sign_velocity_rad_s
        return np.sign(speed_rad_s) if smooth_rad_s is None else np.tanh(speed_rad_s / smooth_rad_s)

    def column(self, term: str, speed_rad_s: FloatArray) -> FloatArray:
        """Return what one unit of a term, as the robot file names it, adds to the torque.

        Raises:
            ValueError: It is not a term of friction.
        """
        match term:
            case "viscous":
                return speed_rad_s
            case "coulomb":
                return self.sign(speed_rad_s)
            case "offset":
                return np.ones_like(speed_rad_s)
            case "asymmetric":
                return np.abs(speed_rad_s)
            case "stribeck":
                fade = np.exp(-np.square(speed_rad_s / self.stribeck_velocity_rad_s))
                return self.sign(speed_rad_s) * fade
        raise ValueError(f"{term!r} is not a term of friction")

    def torque_nm(self, values: Mapping[str, float], speed_rad_s: FloatArray) -> FloatArray:
        """Return τ_f at speeds of any shape; terms that are not given are zero."""
        torque = np.zeros_like(speed_rad_s)
        for term, value in values.items():
            torque = torque + value * self.column(term, speed_rad_s)
        return torque
