"""The pseudo-inertia: linear in a link's ten parameters, positive definite when it is consistent.

J = ∫(x, 1)(x, 1)ᵀ dm = [[Σ, mc], [mcᵀ, m]] with Σ = tr(Ī)/2·1 − Ī. A positive definite inertia
alone is not enough: J ≻ 0 says that there is mass, somewhere, that has these moments.

References: [Wensing 2018].
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from estimation.model.parameters import INERTIAL
from estimation.types import FloatArray


def _basis() -> FloatArray:
    """Return J of each parameter alone, shape (10, 4, 4)."""
    basis = np.zeros((len(INERTIAL), 4, 4))
    basis[0, 3, 3] = 1.0
    for axis in range(3):
        basis[1 + axis, axis, 3] = basis[1 + axis, 3, axis] = 1.0
    places = {"Ixx": (0, 0), "Ixy": (0, 1), "Iyy": (1, 1), "Ixz": (0, 2), "Iyz": (1, 2)}
    places["Izz"] = (2, 2)
    for name, (row, column) in places.items():
        inertia = np.zeros((3, 3))
        inertia[row, column] = inertia[column, row] = 1.0
        basis[INERTIAL.index(name), :3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    return basis


BASIS: Final = _basis()
"""J = Σ BASIS[k]·π[k]."""


def pseudo_inertias(link: ArrayLike) -> FloatArray:
    """Return J of one or many links' ten parameters, shape (…, 10) → (…, 4, 4)."""
    return np.tensordot(np.asarray(link, dtype=np.float64), BASIS, axes=1)


def link_parameters(pseudo: ArrayLike) -> FloatArray:
    """Return the ten parameters of a J, shape (…, 4, 4) → (…, 10)."""
    J = np.asarray(pseudo, dtype=np.float64)
    second = J[..., :3, :3]
    trace = np.trace(second, axis1=-2, axis2=-1)
    xx, yy, zz = (trace - second[..., axis, axis] for axis in range(3))
    return np.stack(
        [
            *(J[..., 3, 3], J[..., 0, 3], J[..., 1, 3], J[..., 2, 3]),
            *(xx, -second[..., 0, 1], yy, -second[..., 0, 2], -second[..., 1, 2], zz),
        ],
        axis=-1,
    )


def least_eigenvalues(theta: ArrayLike, joint_count: int) -> FloatArray:
    """Return the least eigenvalue of each link's J, shape (n_joints,).

    It is positive where the link is physically consistent.
    """
    links = np.asarray(theta, dtype=np.float64)[: 10 * joint_count].reshape(joint_count, 10)
    return np.asarray(np.linalg.eigvalsh(pseudo_inertias(links))[:, 0], dtype=np.float64)
