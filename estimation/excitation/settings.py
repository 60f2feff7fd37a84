"""Settings of the search for an excitation, and their limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

Objective = Literal["cond", "dopt"]
OBJECTIVES: Final[tuple[Objective, ...]] = ("cond", "dopt")

HARMONICS_MAX: Final = 30
FREQUENCY_MAX_HZ: Final = 10.0
"""Of the highest harmonic: links and gears are taken for rigid, and a reference at 1 kHz for
smooth."""
DURATION_MAX_S: Final = 599.0
"""The loop takes ten minutes of rows."""
VALIDATION_F0: Final = 0.8
"""A validation trajectory's fundamental frequency, by the identification's: another spectrum."""
SEED_MAX: Final = (1 << 63) - 1
"""What the file that states it can hold."""
_EVALUATIONS_PER_JOINT: Final = 2000
_MANY_JOINTS: Final = 7
"""From here on each evaluation takes so long that there must be fewer."""
_VALIDATION_EVALUATIONS: Final = 0.1
_EVALUATIONS_MAX: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class ExcitationSettings:
    """What to look for.

    Attributes:
        f0_hz: Fundamental frequency; a validation trajectory gets `VALIDATION_F0` times that.
        harmonics: How many, at least 2: one alone cannot start from rest.
        duration_s: How long the trajectory lasts.
        seed: Of all random numbers; one seed, one result.
        objective: `cond`, the condition number of the base regressor; `dopt`, −log det of its Gram
            matrix.
        evaluations: Trajectories tried; None for `default_evaluations`.
        is_validation: Whether it shall be one to validate with: drawn from other random numbers,
            of other frequencies, and less refined.
    """

    f0_hz: float = 0.1
    harmonics: int = 5
    duration_s: float = 20.0
    seed: int = 0
    objective: Objective = "cond"
    evaluations: int | None = None
    is_validation: bool = False

    @property
    def own_f0_hz(self) -> float:
        """The fundamental frequency of the trajectory."""
        return self.f0_hz * (VALIDATION_F0 if self.is_validation else 1.0)

    def default_evaluations(self, joints: int) -> int:
        """How many trajectories are tried, unless somebody says otherwise."""
        share = _VALIDATION_EVALUATIONS if self.is_validation else 1.0
        few = min(joints, _MANY_JOINTS)
        return round(share * _EVALUATIONS_PER_JOINT * few * (few / joints) ** 3)

    def problems(self) -> Iterator[str]:
        """Yield what is wrong with them, each as `name value: what must be`."""
        highest_hz = self.f0_hz * self.harmonics
        if not 0.0 < self.f0_hz <= FREQUENCY_MAX_HZ:
            yield f"f0 {self.f0_hz:g}: must be more than 0, at most {FREQUENCY_MAX_HZ:g} Hz"
        elif not 2 <= self.harmonics <= HARMONICS_MAX:
            yield (
                f"harmonics {self.harmonics}: must lie between 2 (one alone cannot start from "
                f"rest) and {HARMONICS_MAX}"
            )
        elif highest_hz > FREQUENCY_MAX_HZ * (1.0 + 1e-9):
            yield (
                f"harmonics {self.harmonics}: the highest is {highest_hz:g} Hz, limit "
                f"{FREQUENCY_MAX_HZ:g} Hz; fewer, or a lower f0"
            )
        if not 0.0 < self.duration_s <= DURATION_MAX_S:
            yield f"duration {self.duration_s:g}: must be more than 0, at most {DURATION_MAX_S:g} s"
        elif self.duration_s * self.f0_hz < 1.0 - 1e-9 and self.f0_hz > 0.0:
            yield (
                f"duration {self.duration_s:g}: must be at least one period of f0, "
                f"{1.0 / self.f0_hz:g} s"
            )
        if not 0 <= self.seed <= SEED_MAX:
            yield f"seed {self.seed}: must not be negative, nor more than {SEED_MAX}"
        if self.evaluations is not None and not 1 <= self.evaluations <= _EVALUATIONS_MAX:
            yield f"evaluations {self.evaluations}: must lie between 1 and {_EVALUATIONS_MAX}"
