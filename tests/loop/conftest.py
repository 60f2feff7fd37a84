from __future__ import annotations

import sys
from pathlib import Path

# Test folders are no packages: their shared modules are found by this path.
sys.path.insert(0, str(Path(__file__).parent))
