"""What the terminal shows of an identification."""

from __future__ import annotations

import pytest
from identification_report_example import make_example

from tools.identify.table import show


def test_joints_have_their_names(capsys: pytest.CaptureFixture[str]) -> None:
    """A bug: errors stood under `joint 1` and `joint 2` whatever the joints were named."""
    result, _ = make_example(2, joint_names=("shoulder", "[red]elbow"), methods=("cls2",))
    show(result)
    shown = capsys.readouterr().out
    assert "shoulder" in shown and "[red]elbow" in shown and "joint 1" not in shown
