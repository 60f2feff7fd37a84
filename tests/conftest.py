from __future__ import annotations

import os
import shutil
import signal

import hypothesis
import pytest

# How long an example takes says more about the machine's other users than about us.
hypothesis.settings.register_profile("armature", deadline=None)
hypothesis.settings.load_profile("armature")

# Workers' matrices would wait for each other's threads: as in `tools.main`, before numpy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

COMPILERS = ("cc", "gcc", "clang")


def pytest_configure() -> None:
    # Of a script in the background all children ignore these: then no test could send them.
    for number, handler in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGQUIT, signal.SIG_DFL),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("compiler") is None:
        return
    if not any(shutil.which(name) for name in COMPILERS):
        if os.environ.get("CI"):
            pytest.fail("no C compiler in CI: what is compiled would go untested")
        pytest.skip("no C compiler")
