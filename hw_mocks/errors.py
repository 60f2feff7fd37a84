"""The errors of `hw_mocks`; those of the emulated device are in `emulated_spi.errors`.

```
MockError
├── MockConfigError (ValueError)      a mock was asked for something that cannot be simulated
└── MockPhysicsError (ArithmeticError)   the simulated robot is too fast for the simulation
```
"""

from __future__ import annotations

from collections.abc import Sequence


class MockError(Exception):
    """Base of everything that `hw_mocks` raises on purpose.

    Attributes:
        code: What happened, in a word for programs and tests; empty where the class says it all.
    """

    def __init__(self, *arguments: object, code: str = "") -> None:
        super().__init__(*arguments)
        self.code = code


class MockConfigError(MockError, ValueError):
    """A mock cannot be set up as asked; carries every problem of its source, not the first."""

    def __init__(self, source: str, problems: Sequence[str]) -> None:
        self.source = source
        self.problems = tuple(problems)
        super().__init__("\n".join([f"{source}:", *(f"  {problem}" for problem in self.problems)]))


class MockPhysicsError(MockError, ArithmeticError):
    """The simulated robot moves faster than the simulation's steps can follow."""
