"""How figure, page and tables of the friction bench write numbers and names, to be read.

Escaping is up to the caller.
"""

from __future__ import annotations

from typing import NamedTuple

from estimation.bench.result import BenchResult, EstimatedQuantity
from estimation.reporting.numbers import interval_text, number_text

UNITS = {
    "_nms": "N·m·s/rad",
    "_nm": "N·m",
    "_rad_s": "rad/s",
    "_kg_m2": "kg·m²",
    "_nm_per_a": "N·m/A",
    "_a": "A",
    "": "",
}
"""By the end of a quantity's name; the longest that fits."""
_MODEL_TITLES = {
    "coulomb_viscous": "Coulomb + viscous",
    "asymmetric": "asymmetric Coulomb + viscous",
    "stribeck": "Stribeck",
}


class QuantityRow(NamedTuple):
    """A quantity of a result, on either side of the gear.

    Attributes:
        name: Short, for a terminal.
        title: For a page, as HTML.
        unit: Of both.
        motor: At the motor.
        load: At the load.
    """

    name: str
    title: str
    unit: str
    motor: EstimatedQuantity | None
    load: EstimatedQuantity | None = None


def quantity_rows(result: BenchResult) -> list[QuantityRow]:
    """Return what was found out about a joint, in the order in which it is shown."""
    friction, torque, inertia = UNITS["_nms"], UNITS["_nm"], UNITS["_kg_m2"]
    constant, drop = result.torque_constant_nm_per_a, result.torque_constant_drop
    loss = f"loss at {number_text(result.torque_constant_current_a, 3)} A"
    viscous, coulomb = "Viscous friction <i>b</i><sub>eq</sub>", "Coulomb friction <i>f</i>"
    j_eq, k_i = "Inertia <i>J</i><sub>eq</sub>", "Torque constant <i>K<sub>i</sub></i>"
    rows = (
        QuantityRow("viscous b_eq", viscous, friction, result.b_eq_nms, result.b_joint_nms),
        QuantityRow("Coulomb f", coulomb, torque, result.f_motor_nm, result.f_nm),
        QuantityRow(
            "breakaway", "Breakaway torque", torque, result.breakaway_motor_nm, result.breakaway_nm
        ),
        QuantityRow(
            "inertia J_eq", j_eq, inertia, result.inertia_kg_m2, result.inertia_joint_kg_m2
        ),
        QuantityRow("torque constant K_i", k_i, UNITS["_nm_per_a"], constant),
        QuantityRow(f"its {loss}", f"Its {loss}", "%", drop and drop.times(100.0)),
    )
    return [row for row in rows if row.motor is not None or row.load is not None]


def unit_suffix(name: str) -> str:
    """Return the end of a quantity's name that states its unit, a key of `UNITS`."""
    return max((end for end in UNITS if name.endswith(end)), key=len)


def model_title(name: str) -> str:
    """Return what a friction model is called in words."""
    return _MODEL_TITLES.get(name, name.replace("_", " ")) or "none"


def quantity_text(quantity: EstimatedQuantity | None, unit: str = "") -> str:
    """Return an estimate with its interval, `2.42 [2.39, 2.45] ×10⁻⁶ N·m`; an en dash for none."""
    if quantity is None:
        return "–"
    return interval_text(quantity.value, quantity.low, quantity.high, unit)


def date_text(recorded_utc: str) -> str:
    """When a recording was made; a virtual clock begins with the Unix epoch: not a date."""
    return "virtual time" if recorded_utc.startswith("1970-01-01T") else recorded_utc
