"""The checks of the demo's results against the mock's truth."""

from __future__ import annotations

from typing import Any, NamedTuple

VALIDATION_MAX_PERCENT = 1.5
CAD_RATIO_MIN = 3.0
INSIDE_MIN = 0.8
"""Share of the true base parameters in their 95 % intervals: of one robot, so less than 95 %."""
FRICTION_TOLERANCE = {"f_nm": 0.02, "b_eq_nms": 0.10}
CONDITION_MAX = 25.0


class Check(NamedTuple):
    """One comparison."""

    what: str
    found: str
    expected: str
    is_ok: bool

    def as_dict(self) -> dict[str, object]:
        """Return the check, ready for JSON."""
        return {**self._asdict()}


def checks_of(facts: dict[str, Any]) -> list[Check]:
    """Compare what the steps said with what is known.

    Args:
        facts: The JSON of each step, by its name.
    """
    return [
        *_friction(facts["friction"]),
        *_excitation(facts["excitation"]),
        *_recordings(facts),
        *_identification(facts["identification"]),
    ]


def _friction(result: dict[str, Any]) -> list[Check]:
    checks = []
    for key, name, unit in (
        ("f_nm", "Coulomb friction on the bench", "N·m"),
        ("b_eq_nms", "viscous friction on the bench", "N·m·s"),
    ):
        quantity, tolerance = result[key], FRICTION_TOLERANCE[key]
        if quantity is None:
            checks.append(Check(name, "nothing", "a value", is_ok=False))
            continue
        value, truth = quantity["value"], quantity["truth"]
        checks.append(
            Check(
                name,
                f"{value:.4g} {unit}",
                f"{truth:.4g} within {100 * tolerance:.0f} %",
                abs(value / truth - 1.0) <= tolerance,
            )
        )
    return checks


def _excitation(result: dict[str, Any]) -> list[Check]:
    condition = result["condition"]
    is_kept = all(limit["is_kept"] for limit in result["limits"])
    return [
        Check(
            "condition of the excitation",
            f"{condition:.1f}",
            f"at most {CONDITION_MAX:g}",
            condition <= CONDITION_MAX,
        ),
        Check("its limits", "kept" if is_kept else "broken", "kept", is_kept),
    ]


def _recordings(facts: dict[str, Any]) -> list[Check]:
    missing = sum(facts[name]["missing"] for name in ("run", "validation_run"))
    samples = sum(facts[name]["samples"] for name in ("run", "validation_run"))
    return [Check("samples recorded", f"{samples}, {missing} missing", "0 missing", missing == 0)]


def _identification(result: dict[str, Any]) -> list[Check]:
    methods = {method["name"]: method for method in result["methods"]}
    chosen, cad = methods[result["chosen"]], methods["cad"]
    error, floor = chosen["validation_percent"], result["floor_percent"]
    inside = chosen["base_parameters_in_interval"]
    ratio = cad["validation_percent"] / error
    near = chosen["identification_percent"] / floor
    return [
        Check(
            f"torque error on validation ({chosen['name']})",
            f"{error:.2f} %",
            f"at most {VALIDATION_MAX_PERCENT:g} %",
            error <= VALIDATION_MAX_PERCENT,
        ),
        Check(
            "compared with CAD",
            f"{ratio:.1f} times better",
            f"at least {CAD_RATIO_MIN:g} times",
            ratio >= CAD_RATIO_MIN,
        ),
        Check(
            "compared with the floor",
            f"{near:.3f} times its error",
            "at most 1.02",
            near <= 1.02,
        ),
        Check(
            "physically consistent",
            "yes" if chosen["consistent"] else "no",
            "yes",
            bool(chosen["consistent"]),
        ),
        Check(
            "true base parameters inside their intervals",
            "unknown" if inside is None else f"{100 * inside:.0f} %",
            f"at least {100 * INSIDE_MIN:.0f} %",
            inside is not None and inside >= INSIDE_MIN,
        ),
    ]
