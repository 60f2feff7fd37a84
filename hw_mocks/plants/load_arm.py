"""A known weight on the output of a joint on the bench, to load it with a known torque."""

from __future__ import annotations

import dataclasses
import math

from hw_mocks.errors import MockConfigError


@dataclasses.dataclass(frozen=True, slots=True)
class MockLoadArm:
    """A point mass on a massless arm, which hangs down where the joint starts.

    Raises:
        MockConfigError: A value is not positive or not finite.
    """

    mass_kg: float
    length_m: float

    def __post_init__(self) -> None:
        problems = [
            f"{field.name} = {value:g}: must be positive"
            for field in dataclasses.fields(self)
            if not 0.0 < (value := getattr(self, field.name)) < math.inf
        ]
        if problems:
            raise MockConfigError("load arm", problems)

    @property
    def inertia_kg_m2(self) -> float:
        """About the joint's axis."""
        return self.mass_kg * self.length_m**2

    def weight_nm(self, gravity_m_s2: tuple[float, float, float]) -> float:
        """Return the torque of its weight when it stands out level, the axis being level itself.

        Only the size of gravity counts: a joint on the bench has no place in the robot.
        """
        return self.mass_kg * self.length_m * math.hypot(*gravity_m_s2)
