"""The result of an identification, ready for JSON; in SI, errors in percent of the torque."""

from __future__ import annotations

import msgspec


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all parts of the result."""


class ErrorsPercent(_Part, frozen=True, kw_only=True):
    """ε_τ = 100·‖τ − Φθ‖/‖τ‖ of one estimate on some recordings.

    `moving` and `per_joint` are over rows in which a joint moves, against the filtered torque;
    `all_rows` over all; `raw` and `raw_per_joint` over all, against the torque before it was
    filtered.
    """

    moving: float
    per_joint: tuple[float, ...]
    all_rows: float
    all_rows_per_joint: tuple[float, ...]
    raw: float
    raw_per_joint: tuple[float, ...]
    rms_nm: tuple[float, ...]


class MethodResult(_Part, frozen=True, kw_only=True):
    """One row of the comparison."""

    name: str
    summary: str
    identification: ErrorsPercent
    validation: ErrorsPercent | None
    cross_validation_percent: float | None
    """On held-out parts of the identification data, with guard gaps; None where not computed."""
    consistent: bool
    """Whether every link is physically consistent (for methods that determine base parameters only:
    whether any such arm has them), and no friction drives."""
    min_pseudo_inertia_eigenvalue: float
    """Of all links."""
    pseudo_inertia_eigenvalues: tuple[float, ...]
    """The least of each link, in the order of the joints; for methods that determine base
    parameters only: of one arm that has them."""
    inertia_matrix_positive: bool
    """B(q) ≻ 0 in every sampled posture."""
    inertia_matrix_condition: tuple[float, float]
    """Least and greatest condition of B(q) over these postures."""
    seconds: float
    base: tuple[float, ...]
    theta: tuple[float, ...] | None
    notes: tuple[str, ...] = ()
    base_parameters_in_interval: float | None = None
    """On the mock: share of the true base parameters inside the 95 % intervals."""
    active_bounds: tuple[str, ...] = ()
    """Names of the bounds that are active."""

    @property
    def judged(self) -> ErrorsPercent:
        """Errors on validation data, if there are any; else on identification data."""
        return self.validation or self.identification


class FailedMethod(_Part, frozen=True, kw_only=True):
    """A method that could not be used, and why."""

    name: str
    reason: str
    code: str = ""
    """Of the error; empty where it has none."""


class BaseParameter(_Part, frozen=True, kw_only=True):
    """A combination of parameters that the data can determine (of the chosen method)."""

    expression: str
    symbol: str
    unit: str
    value: float
    sigma: float
    """Block bootstrap."""
    sigma_ordinary: float
    """As if rows were independent: too small as a rule."""
    low: float
    high: float
    relative_percent: float
    """100·σ/|value|; above 30 the data do not determine it."""
    essential: bool
    cad: float | None
    true: float | None = None
    """On the mock."""
    joint: str
    """Of the parameter that the combination is named after."""
    kind: str
    """Of the same: an element of `INERTIAL`, or a term; `motor_` in front for a coupled motor's."""
    is_alone: bool
    """Whether it is that parameter by itself."""


class ParameterValue(_Part, frozen=True, kw_only=True):
    """One element of θ (of the chosen method)."""

    symbol: str
    unit: str
    joint: str
    value: float
    sigma: float | None
    """None where the data determine it only in combination with others."""
    cad: float | None
    is_identifiable: bool
    """Whether it is a base parameter by itself."""
    kind: str
    """As of base parameters."""


class ResidualTest(_Part, frozen=True, kw_only=True):
    """Tests of the residuals of one joint's torque, by the chosen method."""

    joint: str
    mean_nm: float
    rms_nm: float
    memory_s: float
    """After this long, residuals are no longer correlated (autocorrelation below 1/e)."""
    kurtosis: float
    """0 for Gaussian residuals; outliers make it large."""
    velocity_correlation: float
    """With the sign of the velocity: friction that the model lacks."""


class SimulationCheck(_Part, frozen=True, kw_only=True):
    """How well the identified arm moves like the real one."""

    closed_loop_position_rms_rad: tuple[float, ...] | None
    closed_loop_torque_percent: float | None
    open_loop_position_rms_rad: tuple[float, ...] | None
    open_loop_window_s: float | None
    notes: tuple[str, ...] = ()


class Interval(_Part, frozen=True, kw_only=True):
    """An estimate and its 95 % interval."""

    value: float
    low: float
    high: float


class PayloadResult(_Part, frozen=True, kw_only=True):
    """What the arm carries, in the frame of its last joint; inertia about its centre of mass."""

    mass_kg: Interval
    centre_m: tuple[Interval, ...]
    inertia_kg_m2: tuple[Interval, ...]
    """xx, xy, yy, xz, yz, zz."""
    misfit: float
    """Far above 1 when something other than a payload has changed."""
    notes: tuple[str, ...]
    files: tuple[str, ...] = ()
    """Names of the recordings with payload."""


class Verdict(_Part, frozen=True, kw_only=True):
    """Whether the model can be used, why or why not, and its scope."""

    is_usable: bool
    text: str
    scope: str
    doubts: tuple[str, ...] = ()
    """Why one should look before using it; they are in the text, too."""
    codes: tuple[str, ...] = ()
    """Of the problems and then of the doubts: what was found, in a word for programs."""


class RecordingSummary(_Part, frozen=True, kw_only=True):
    """A recording, and how much of it was used."""

    file: str
    rows: int
    rows_used: int
    left_out: dict[str, int]
    seconds: float
    notes: tuple[str, ...] = ()
    """Reasons to doubt it."""


class Identification(_Part, frozen=True, kw_only=True):
    """Everything that an identification found."""

    robot: str
    joint_names: tuple[str, ...]
    recordings: tuple[RecordingSummary, ...]
    validation_recordings: tuple[RecordingSummary, ...]
    terms: tuple[str, ...]
    parameter_count: int
    rank: int
    lost: tuple[str, ...]
    """Parameters that no torque depends on."""
    condition: float
    condition_scaled: float
    singular_values: tuple[float, ...]
    floor_percent: float
    """Error of unconstrained least squares: no estimator of this model can be below it."""
    floor_all_rows_percent: float
    moving_rows_percent: float
    """Share of rows in which joints move: those that are fitted."""
    preparation: tuple[str, ...]
    cutoff_hz: float
    decimation: int
    methods: tuple[MethodResult, ...]
    failed: tuple[FailedMethod, ...]
    chosen: str
    """The method whose parameters are written."""
    base_parameters: tuple[BaseParameter, ...]
    parameters: tuple[ParameterValue, ...]
    residuals: tuple[ResidualTest, ...]
    simulation: SimulationCheck | None
    """None where it was not asked for."""
    payload: PayloadResult | None = None
    verdict: Verdict
    seconds: float
    armature_version: str
    is_mock: bool
    seed: int

    def method(self, name: str) -> MethodResult:
        """Return the row of a method."""
        return next(method for method in self.methods if method.name == name)
