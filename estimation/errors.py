"""Every error that `estimation` raises.

```
EstimationError
└── DatasetError (ValueError)      data that cannot be used; says what, value, limit, what to do
```
"""

from __future__ import annotations


class EstimationError(Exception):
    """Base of everything that `estimation` raises on purpose."""


class DatasetError(EstimationError, ValueError):
    """Data, or a setting for them, from which nothing sound can be computed."""
