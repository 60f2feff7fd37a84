"""Judges whether the identified model can be used, with reasons to doubt it, and its scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from estimation.identification.evaluation.data_checks import DataChecks, VerdictReason
from estimation.identification.result import (
    BaseParameter,
    MethodResult,
    ResidualTest,
    Verdict,
)

_GOOD_PERCENT = 10.0
"""Of the torque: what is left by a model that is worth using in a controller."""
_JOINT_PERCENT, _JOINT_USELESS_PERCENT = 20.0, 50.0
"""Of one joint's torque: worth a look, and useless; one joint's gravity hides the others."""
_MEMORY_S = 0.15
"""Residuals that are correlated for longer than this contain something that the model lacks."""
_IDENTIFIABLE_PERCENT = 30.0
_SAME_PERCENT = 1e-9
_DISAGREE, _CONTRADICT = 1.5, 3.0
"""Times the floor's error, from which on constraints and data disagree, or contradict."""


def reach_verdict(
    methods: Sequence[MethodResult],
    chosen: str,
    *,
    joint_names: Sequence[str],
    residuals: Sequence[ResidualTest] = (),
    base: Sequence[BaseParameter] = (),
    data_checks: DataChecks | None = None,
    is_relaxed: bool = False,
) -> Verdict:
    """Judge the chosen method.

    Usable when it is physically consistent and predicts torques, judged on validation data where
    there are any.
    """
    row = next(method for method in methods if method.name == chosen)
    floor = next((method for method in methods if method.name == "uls"), None)
    judged = row.judged
    errors = dict(zip(joint_names, judged.per_joint, strict=True))
    problems, doubts = _problems(methods, row, errors), _doubts(row, errors, residuals, base)
    ratio = 1.0
    if floor is not None:
        ratio = row.identification.moving / max(floor.identification.moving, 1e-12)
        if ratio > _CONTRADICT:
            text = "its constraints and the data contradict each other: check masses and units"
            problems.append(VerdictReason("contradicting-constraints", text))
        elif ratio > _DISAGREE:
            text = "its constraints and the data disagree: check masses and units"
            doubts.append(VerdictReason("disagreeing-constraints", text))
    if data_checks is not None:
        problems += data_checks.problems
        doubts += data_checks.doubts
    if is_relaxed:
        doubts.append(VerdictReason("relaxed-bounds", "bounds had to be relaxed"))
    worst = max(joint_names, key=errors.__getitem__)
    text = (
        f"{chosen} leaves {judged.moving:.2f} % of the torque where joints move and "
        f"{judged.all_rows:.2f} % over all rows; most at {worst}, {errors[worst]:.1f} %"
    )
    if floor is not None and floor.name != chosen:
        text += f". Its error is {ratio:.3f} times that of unconstrained least squares, the floor"
    if problems:
        text += f". It is not to be relied on: {'; '.join(each.text for each in problems)}"
    if doubts:
        text += f". Reasons to doubt it: {'; '.join(each.text for each in doubts)}"
    scope = "speeds, accelerations and postures like those of the recordings; nothing was carried"
    if row.validation is None:
        scope = (
            "the identification data only: no other recording was given to validate with "
            f"(--validate); otherwise {scope}"
        )
    return Verdict(
        is_usable=not problems,
        text=text,
        scope=scope,
        doubts=tuple(each.text for each in doubts),
        codes=tuple(each.code for each in (*problems, *doubts)),
    )


def _problems(
    methods: Sequence[MethodResult], row: MethodResult, errors: Mapping[str, float]
) -> list[VerdictReason]:
    """Return why it is not to be used."""
    judged = row.judged
    cad = next((method for method in methods if method.name == "cad"), None)
    problems: list[VerdictReason] = []
    if not row.consistent:
        problems.append(VerdictReason("inconsistent", "it is not physically consistent"))
    if not row.inertia_matrix_positive:
        text = "its inertia matrix is not positive definite everywhere"
        problems.append(VerdictReason("indefinite-inertia-matrix", text))
    if not judged.moving <= _GOOD_PERCENT:
        text = f"{judged.moving:.1f} % of the torque is left (limit {_GOOD_PERCENT:g} %)"
        problems.append(VerdictReason("large-error", text))
    if cad is not None and cad.name != row.name and judged.moving >= cad.judged.moving:
        text = f"CAD predicts as well ({cad.judged.moving:.2f} %)"
        problems.append(VerdictReason("no-better-than-cad", text))
    if row.validation is not None and row.validation.moving > 3.0 * row.identification.moving:
        text = "it predicts the data it was fitted to much better than others: it is overfitted"
        problems.append(VerdictReason("overfitted", text))
    useless = [
        f"{name} ({error:.0f} %)"
        for name, error in errors.items()
        if not error <= _JOINT_USELESS_PERCENT
    ]
    if useless:
        problems.append(VerdictReason("unpredicted-joint", f"it does not predict {_few(useless)}"))
    return problems


def _doubts(
    row: MethodResult,
    errors: Mapping[str, float],
    residuals: Sequence[ResidualTest],
    base: Sequence[BaseParameter],
) -> list[VerdictReason]:
    """Return why one should look before using it."""
    doubts: list[VerdictReason] = []
    if row.validation is not None:
        known, unknown = row.identification, row.validation
        if max(map(abs, np.subtract(known.per_joint, unknown.per_joint))) < _SAME_PERCENT:
            text = "validation and identification data are the same"
            doubts.append(VerdictReason("same-data", text))
    bad = [
        f"{name} ({error:.0f} %)"
        for name, error in errors.items()
        if _JOINT_PERCENT < error <= _JOINT_USELESS_PERCENT
    ]
    if bad:
        doubts.append(VerdictReason("large-joint-error", f"much is left at {_few(bad)}"))
    slow = [
        f"{test.joint} ({test.memory_s:.2g} s)"
        for test in residuals
        if test.memory_s > _MEMORY_S and errors[test.joint] > 1.0
    ]
    if slow:
        text = f"residuals are not noise: they last too long at {_few(slow)}"
        doubts.append(VerdictReason("lasting-residuals", text))
    if row.active_bounds:
        doubts.append(VerdictReason("active-bounds", "bounds hold it back (see its notes)"))
    unsure = sum(parameter.relative_percent > _IDENTIFIABLE_PERCENT for parameter in base)
    if base and unsure > 0.5 * len(base):
        text = f"the data hardly determine {unsure} of {len(base)} base parameters"
        doubts.append(VerdictReason("hardly-determined", text))
    return doubts


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
