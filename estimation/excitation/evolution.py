"""Covariance matrix adaptation: a search without derivatives.

Draws candidates from a normal distribution, and moves and turns it towards the better half. This is
the plain method with rank-one and rank-μ updates; what it minimises is up to the caller.

References: [Hansen 2016], whose names and default settings are used here.
"""

from __future__ import annotations

import numpy as np

from estimation.types import FloatArray

_CONDITION_MAX = 1e12


class Evolution:
    """One run of the search, from candidates about a start, shape (n,).

    Attributes:
        population: Candidates per generation.
        sigma: Step size; at first, the standard deviation of the candidates.
    """

    def __init__(
        self, start: FloatArray, sigma: float, population: int, generator: np.random.Generator
    ) -> None:
        n = len(start)
        self._n, self.population, self.sigma = n, population, sigma
        self._generator = generator
        self._mean = start.astype(np.float64)
        half = population // 2
        weights = np.log(half + 0.5) - np.log(np.arange(1, half + 1))
        self._weights = weights / weights.sum()
        mu = 1.0 / float((self._weights**2).sum())
        self._mu = mu
        self._c_sigma = (mu + 2.0) / (n + mu + 5.0)
        self._damping = 1.0 + 2.0 * max(0.0, np.sqrt((mu - 1.0) / (n + 1.0)) - 1.0) + self._c_sigma
        self._c_c = (4.0 + mu / n) / (n + 4.0 + 2.0 * mu / n)
        self._c_1 = 2.0 / ((n + 1.3) ** 2 + mu)
        self._c_mu = min(1.0 - self._c_1, 2.0 * (mu - 2.0 + 1.0 / mu) / ((n + 2.0) ** 2 + mu))
        self._expected = np.sqrt(n) * (1.0 - 1.0 / (4.0 * n) + 1.0 / (21.0 * n**2))
        self._path_sigma, self._path_c = np.zeros(n), np.zeros(n)
        self._covariance, self._axes, self._lengths = np.eye(n), np.eye(n), np.ones(n)
        self._generation = 0
        # So seldom that decomposing it costs no more than the rest.
        self._refresh_every = max(1, int(1.0 / ((self._c_1 + self._c_mu) * n * 10.0)))
        self._drawn = np.empty((0, n))

    @property
    def spread(self) -> float:
        """Largest standard deviation of the candidates in any direction."""
        return float(self.sigma * self._lengths.max())

    def ask(self) -> FloatArray:
        """Candidates, shape (population, n)."""
        normal = self._generator.normal(size=(self.population, self._n))
        self._drawn = (normal * self._lengths) @ self._axes.T
        return self._mean + self.sigma * self._drawn

    def tell(self, costs: FloatArray) -> None:
        """Learn from the costs of the candidates asked for last, shape (population,)."""
        self._generation += 1
        best = np.argsort(costs, kind="stable")[: len(self._weights)]
        steps = self._drawn[best]
        step = self._weights @ steps
        self._mean = self._mean + self.sigma * step
        whitened = self._axes @ ((self._axes.T @ step) / self._lengths)
        c_sigma, c_c = self._c_sigma, self._c_c
        self._path_sigma = (1.0 - c_sigma) * self._path_sigma
        self._path_sigma += np.sqrt(c_sigma * (2.0 - c_sigma) * self._mu) * whitened
        length = float(np.linalg.norm(self._path_sigma))
        settled = np.sqrt(1.0 - (1.0 - c_sigma) ** (2 * self._generation))
        is_short = length / settled < (1.4 + 2.0 / (self._n + 1.0)) * self._expected
        self._path_c = (1.0 - c_c) * self._path_c
        if is_short:
            self._path_c += np.sqrt(c_c * (2.0 - c_c) * self._mu) * step
        kept = 1.0 - self._c_1 - self._c_mu + (0.0 if is_short else self._c_1 * c_c * (2.0 - c_c))
        self._covariance = (
            kept * self._covariance
            + self._c_1 * np.outer(self._path_c, self._path_c)
            + self._c_mu * (steps.T * self._weights) @ steps
        )
        self.sigma *= float(np.exp((c_sigma / self._damping) * (length / self._expected - 1.0)))
        if self._generation % self._refresh_every == 0:
            self._refresh()

    def _refresh(self) -> None:
        self._covariance = 0.5 * (self._covariance + self._covariance.T)
        variances, self._axes = np.linalg.eigh(self._covariance)
        variances = np.maximum(variances, variances[-1] / _CONDITION_MAX)
        self._lengths = np.sqrt(variances)
