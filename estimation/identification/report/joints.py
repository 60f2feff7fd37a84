"""How many joints an identification has, and what they are called."""

from __future__ import annotations

import re

from estimation.identification.result import Identification

_MASS = re.compile(r"m(\d+)")


def joint_count(result: Identification) -> int:
    """How many joints there are.

    Args:
        result: What was identified; with at least one method, as always.
    """
    return len(result.methods[0].identification.per_joint)


def joint_names(result: Identification) -> tuple[str, ...]:
    """What the joints are called.

    A method that tells base parameters only leaves no list of all parameters, and a joint that
    never moved has no residuals: then a number has to do.

    Args:
        result: What was identified.
    """
    count = joint_count(result)
    names = {
        int(found[1]): parameter.joint
        for parameter in result.parameters
        if (found := _MASS.fullmatch(parameter.symbol))
    }
    if not names and len(result.residuals) == count:
        names = dict(enumerate((test.joint for test in result.residuals), start=1))
    return tuple(names.get(number, f"joint {number}") for number in range(1, count + 1))
