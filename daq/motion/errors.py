"""Every error that `daq.motion` raises.

```
DaqError
└── MotionError (ValueError)
    ├── MotionLimitError       a motion would exceed a limit of the robot file
    ├── TrajectoryFileError    a trajectory file cannot be used
    └── HomingError            a joint's zero could not be determined
```
"""

from __future__ import annotations

from daq.errors import DaqError


class MotionError(DaqError, ValueError):
    """Base of everything that `daq.motion` raises on purpose."""


class MotionLimitError(MotionError):
    """A motion would exceed a limit.

    Attributes:
        value: What it would reach.
        limit: What it may reach.
        row: The trajectory's row concerned, where there is one.
    """

    def __init__(
        self,
        joint: str,
        message: str,
        *,
        value: float,
        limit: float,
        row: int | None = None,
        code: str = "",
    ) -> None:
        self.joint = joint
        self.value = value
        self.limit = limit
        self.row = row
        super().__init__(f"{joint}: {message}", code=code)


class TrajectoryFileError(MotionError):
    """A trajectory file cannot be used."""

    def __init__(self, path: object, message: str, *, code: str = "") -> None:
        self.path = path
        super().__init__(f"{path}: {message}", code=code)


class HomingError(MotionError):
    """A joint's zero could not be determined."""

    def __init__(self, joint: str, message: str, *, code: str = "") -> None:
        self.joint = joint
        super().__init__(f"{joint}: {message}", code=code)
