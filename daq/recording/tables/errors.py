"""What can be wrong with a file of numbers.

```
TableError (DaqError, ValueError)   names the file, what is wrong with it and what to do
└── UnevenRowsError                 a row has more or fewer values than the others
```
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from daq.errors import DaqError


class TableError(DaqError, ValueError):
    """A file of numbers cannot be read."""

    def __init__(self, path: Path, problem: str, *, code: str = "") -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path}: {problem}", code=code)


class UnevenRowsError(TableError):
    """A row has more or fewer values than the others."""


@contextmanager
def damaged(path: Path, *kinds: type[Exception], part: str = "") -> Iterator[None]:
    """Turn what a library raises for damaged contents into a `TableError`.

    Only around its calls: a mistake of ours must not be called a damaged file. `part` is the array
    concerned.
    """
    try:
        yield
    except kinds as error:
        what = f"{part} is damaged" if part else f"damaged, or not a {path.suffix} file"
        raise TableError(path, f"{what}: {error}", code="damaged") from error
