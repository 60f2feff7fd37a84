"""Every error that `estimation` raises.

```
EstimationError
├── DatasetError (ValueError)      data that cannot be used; says what, value, limit, what to do
│   └── OptionError                an option that the data cannot follow: the user's, not theirs
├── ExcitationError (ValueError)   no trajectory can be found; says which limit is in the way
├── InfeasibleParametersError      constraints that no arm can keep; says which contradict
└── UrdfError (ValueError)         a URDF that cannot be read or written; says what to do
```
"""

from __future__ import annotations


class EstimationError(Exception):
    """Base of everything that `estimation` raises on purpose.

    Attributes:
        code: What happened, in a word for programs and tests that outlives the sentence.
    """

    def __init__(self, *arguments: object, code: str = "") -> None:
        super().__init__(*arguments)
        self.code = code


class DatasetError(EstimationError, ValueError):
    """Data, or a setting for them, from which nothing sound can be computed."""


class OptionError(DatasetError):
    """An option that these files cannot follow: a column that is not there, no such rows.

    Not raised for what was found without options: the exit codes differ.
    """


class ExcitationError(EstimationError, ValueError):
    """A trajectory that cannot be made as asked for, or not within the arm's limits."""


class InfeasibleParametersError(EstimationError):
    """Constraints that contradict each other: no parameters keep all of them."""


class UrdfError(EstimationError, ValueError):
    """A URDF from which no robot file can be made, or the other way round.

    Attributes:
        source: The URDF, or the robot.
        problem: What is wrong, and what to do.
    """

    def __init__(self, source: str, problem: str, *, code: str = "") -> None:
        self.source, self.problem = source, problem
        super().__init__(f"{source}: {problem}", code=code)
