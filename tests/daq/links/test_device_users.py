from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from daq.links.device_users import programs_using


@pytest.mark.system
def test_programs_with_the_device_open_are_named(tmp_path: Path) -> None:
    device = tmp_path / "ttyX"
    device.touch()
    assert programs_using(str(device)) == []
    code = f"f = open({str(device)!r}); print('open', flush=True); input()"
    user = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert user.stdout is not None
    user.stdout.readline()
    link = tmp_path / "link"
    link.symlink_to(device)
    try:
        for name in (device, link):
            (found,) = programs_using(str(name))
            assert f"(process {user.pid})" in found
        with device.open():
            assert not any(str(os.getpid()) in text for text in programs_using(str(device)))
    finally:
        user.communicate("\n")
