"""One sentence on whether the identified model can be used, and what it holds for."""

from __future__ import annotations

from collections.abc import Sequence

from estimation.identification.result import MethodResult, Verdict

_GOOD_PERCENT = 10.0
"""Of the torque: what is left by a model that is worth using in a controller."""
_NEAR_FLOOR = 1.1


def reach_verdict(
    methods: Sequence[MethodResult], chosen: str, *, joint_names: Sequence[str]
) -> Verdict:
    """Judge the chosen method.

    Args:
        methods: All that were compared.
        chosen: The one whose parameters are written.
        joint_names: For the scope.

    Returns:
        Usable when it can exist and predicts torques, best on data it does not know.
    """
    row = next(method for method in methods if method.name == chosen)
    cad = next((method for method in methods if method.name == "cad"), None)
    floor = next((method for method in methods if method.name == "uls"), None)
    judged = row.validation or row.identification
    problems = []
    if not row.consistent:
        problems.append("no arm with these parameters can exist")
    if not row.inertia_matrix_positive:
        problems.append("its inertia matrix is not positive definite everywhere")
    if judged.moving > _GOOD_PERCENT:
        problems.append(f"{judged.moving:.1f} % of the torque is left (limit {_GOOD_PERCENT:g} %)")
    if cad is not None and cad.name != chosen:
        cad_errors = cad.validation or cad.identification
        if judged.moving >= cad_errors.moving:
            problems.append(f"CAD predicts as well ({cad_errors.moving:.2f} %)")
    if row.validation is not None and row.validation.moving > 3.0 * row.identification.moving:
        problems.append("it predicts data it knows much better than others: too much is fitted")
    worst = max(range(len(joint_names)), key=lambda joint: judged.per_joint[joint])
    facts = [f"{judged.moving:.2f} % of the torque is left where joints move"]
    facts.append(f"{judged.all_rows:.2f} % over all rows")
    facts.append(f"most at {joint_names[worst]}, {judged.per_joint[worst]:.1f} %")
    if floor is not None and floor.name != chosen:
        near = row.identification.moving / max(floor.identification.moving, 1e-12)
        facts.append(f"{near:.3f} times the floor of unconstrained least squares")
    text = f"{chosen}: {', '.join(facts)}"
    if problems:
        text = f"{text}. Not to be relied on: {'; '.join(problems)}"
    scope = "speeds, accelerations and postures like those of the recordings; nothing was carried"
    if row.validation is None:
        scope = (
            "the identification data only: no other recording was given to validate with "
            f"(--validate); otherwise {scope}"
        )
    return Verdict(is_usable=not problems, text=text, scope=scope)
