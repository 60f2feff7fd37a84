"""What all tests share: tiers, signals, the repetitions that are reported, and files made once."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest
from acceptance import examples
from commands import make_environment

# How long an example takes says more about the machine's other users than about us.
hypothesis.settings.register_profile("armature", deadline=None, max_examples=examples(100))
hypothesis.settings.load_profile("armature")

# Workers' matrices would wait for each other's threads: as in `tools.main`, before numpy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# MuJoCo would start an interpreter to look for a graphics library.
os.environ.setdefault("MUJOCO_GL", "disable")

COMPILERS = ("cc", "gcc", "clang")
LONGEST = {"test_the_whole_demo"}


def pytest_configure() -> None:
    # Of a script in the background all children ignore the first two, of `nohup` the last: then no
    # test could send them. Python's handlers end with the start of a program, which then has the
    # default; ours of SIGHUP does nothing, so that a test run still survives its terminal.
    for number, handler in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGQUIT, signal.SIG_DFL),
        (signal.SIGHUP, lambda *_: None),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


# --- tiers ----------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def processes() -> None:
    """For fixtures that start processes: whoever uses one of them is a system test."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "processes" in getattr(item, "fixturenames", ()):
            item.add_marker("system")
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("acceptance")  # with more draws
    # Work that is stolen comes from the end: what takes long begins early, and real time is kept by
    # one worker while the other computes.
    items.sort(
        key=lambda item: (
            item.name not in LONGEST,
            not is_system(item),
            item.get_closest_marker("chain") is None,
        )
    )


def is_system(item: pytest.Item) -> bool:
    return any(map(item.get_closest_marker, ("system", "compiler")))


class _Starts:
    """Notices the processes that a unit test starts."""

    EVENTS = frozenset({"subprocess.Popen", "os.posix_spawn", "os.system"})
    QUICK = frozenset({"git", "uname", "fc-list"})
    """What Python's `platform`, our version and, once on a machine, Matplotlib's fonts ask."""

    def __init__(self) -> None:
        self.is_unit_test = False
        self.seen: list[str] = []
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.is_unit_test and event in self.EVENTS and arguments[0] not in self.QUICK:
            self.seen.append(f"{event} {arguments[:2]}")


_starts = _Starts()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[object]:
    _starts.is_unit_test = not is_system(item)
    _starts.seen.clear()
    try:
        return (yield)
    finally:
        _starts.is_unit_test = False


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    if _starts.seen:
        pytest.fail(f"a unit test starts a process ({_starts.seen[0]}): mark it `system`")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("compiler") is None:
        return
    if not any(shutil.which(name) for name in COMPILERS):
        if os.environ.get("CI"):
            pytest.fail("no C compiler in CI: what is compiled would go untested")
        pytest.skip("no C compiler")


# --- repetitions ----------------------------------------------------------------------------------


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says which tests were done once more: too many hide a deadline that is really missed."""
    reports = [report for kind in terminalreporter.stats.values() for report in kind]
    repeated = {
        report.nodeid: value
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == "repeated"
    }
    if not repeated:
        return
    terminalreporter.section(f"{len(repeated)} tests done once more: the machine was away")
    for nodeid, reason in repeated.items():
        terminalreporter.line(f"{nodeid}: {reason}")


# --- files ----------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def environment(processes: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """For programs that a test starts."""
    return make_environment(tmp_path_factory.mktemp("environment"))


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Makes a directory of files that tests only read: once per run, whichever worker is first."""
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent

    def make(name: str, fill: Callable[[Path], object]) -> Path:
        directory = root / f"shared-{name}"
        done = directory.with_suffix(".done")
        with directory.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                shutil.rmtree(directory, ignore_errors=True)
                directory.mkdir()
                fill(directory)
                done.touch()
        return directory

    return make
