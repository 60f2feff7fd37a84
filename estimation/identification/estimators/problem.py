"""What every estimator gets and returns: one interface for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from estimation.identification.data.factors import Factors
from estimation.identification.estimators.bounds import Bounds
from estimation.model.base import BaseParameters
from estimation.model.regressor import Regressor
from estimation.signals.preparation import Prepared
from estimation.types import FloatArray


@dataclass(frozen=True, slots=True)
class Instruments:
    """Motion that goes with the samples but does not contain the measurement's noise.

    Attributes:
        motion: From θ, shape (p,), to prepared motion, segment by segment as `Problem.samples`; it
            may have more rows and more segments than those.
        is_simulated: Whether a simulation with θ makes it; otherwise it is the reference itself.
    """

    motion: Callable[[FloatArray], Iterator[Prepared]]
    is_simulated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Data and knowledge, the same for every estimator.

    Attributes:
        regressor: Of the arm.
        base: Its base parameters.
        factors: Of the identification data.
        bounds: What is known of masses, centres of mass and friction.
        cad: θ from the robot file, shape (p,); None when it knows no links.
        samples: Iterates the prepared samples again, for estimators that need more than factors.
        seed: Of everything random.
        starts: From how many points a search begins.
        progress: Told what is being done, by estimators that take long.
        instruments: For instrumental variables; None where references are not known.
    """

    regressor: Regressor
    base: BaseParameters
    factors: Factors
    bounds: Bounds
    cad: FloatArray | None
    samples: Callable[[], Iterator[Prepared]]
    seed: int = 0
    starts: int = 10
    progress: Callable[[str], None] = field(default=lambda _text: None)
    instruments: Instruments | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What an estimator found.

    Attributes:
        method: Its name.
        beta: Base parameters, shape (r,).
        theta: All parameters, shape (p,), where the method determines them; else None.
        notes: What a reader should know of it.
        active_bounds: Names of the bounds that hold it back.
    """

    method: str
    beta: FloatArray
    theta: FloatArray | None = None
    notes: tuple[str, ...] = ()
    active_bounds: tuple[str, ...] = ()
