"""The real clock and the kernel's privileges; nothing here judges how late a wake-up is."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from daq.system.realtime import MonotonicClock

PROJECT = Path(__file__).parents[3]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

# Becomes an ordinary user where limits are given, prints what it got, and shows that it goes on.
ACQUIRE = """
import gc, os, resource, sys
from pathlib import Path
from daq.system.realtime import MonotonicClock, acquire_privileges, release_privileges
from daq.robot import Timing

def show():
    flags = os.SCHED_RESET_ON_FORK
    scheduler = os.sched_getscheduler(0)
    status = Path("/proc/self/status").read_text().splitlines()
    locked = next(line for line in status if line.startswith("VmLck:"))
    print(scheduler & ~flags == os.SCHED_FIFO, bool(scheduler & flags),
          os.sched_getparam(0).sched_priority, len(os.sched_getaffinity(0)),
          int(locked.split()[1]) > 0, gc.isenabled())

core, *limits = map(int, sys.argv[1:])
if limits:
    try:
        resource.setrlimit(resource.RLIMIT_RTPRIO, tuple(limits[:2]))
        resource.setrlimit(resource.RLIMIT_MEMLOCK, tuple(limits[2:]))
    except (OSError, ValueError):
        sys.exit("not allowed")
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
for sentence in acquire_privileges(Timing(priority=60, core=None if core < 0 else core)):
    print("-", sentence)
show()
blocks = [bytes(1 << 20) for _ in range(64)]
clock = MonotonicClock()
clock.sleep_until_ns(clock.now_ns() + 1_000_000)
release_privileges()
show()
"""


@pytest.fixture
def interruption() -> Iterator[list[int]]:
    """Collects when a real timer interrupts this process, twenty times from 2 ms on."""
    times_ns: list[int] = []
    previous = signal.signal(
        signal.SIGALRM, lambda _number, _frame: times_ns.append(time.monotonic_ns())
    )
    signal.setitimer(signal.ITIMER_REAL, 2e-3, 2e-3)
    yield times_ns
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, previous)


@pytest.mark.parametrize("spin_ns", [0, 300_000])
def test_it_never_wakes_before_a_deadline(spin_ns: int) -> None:
    clock = MonotonicClock(spin_ns=spin_ns)
    deadline_ns = clock.now_ns()
    for _ in range(50):
        deadline_ns += 1_000_000
        clock.sleep_until_ns(deadline_ns)
        assert clock.now_ns() >= deadline_ns


def test_the_spin_takes_processor_time_and_the_sleep_does_not() -> None:
    used_ns = {}
    for spin_ns in (0, 50_000_000):
        clock = MonotonicClock(spin_ns=spin_ns)
        before_ns = time.process_time_ns()
        clock.sleep_until_ns(clock.now_ns() + 50_000_000)
        used_ns[spin_ns] = time.process_time_ns() - before_ns
    assert used_ns[0] < used_ns[50_000_000]


@pytest.mark.parametrize("deadline_ns", [-(10**9), -1, 0, 1])
def test_a_deadline_in_the_past_is_over(deadline_ns: int) -> None:
    MonotonicClock().sleep_until_ns(deadline_ns)


def test_deadlines_beyond_a_second_boundary() -> None:
    clock = MonotonicClock()
    deadline_ns = (clock.now_ns() // 10**9 + 1) * 10**9
    clock.sleep_until_ns(deadline_ns)
    assert clock.now_ns() >= deadline_ns


def test_utc_is_the_calendars() -> None:
    before_ns = time.time_ns()
    assert before_ns <= MonotonicClock.utc_ns() <= time.time_ns()


def test_handlers_run_during_the_sleep_and_the_deadline_stands(interruption: list[int]) -> None:
    clock = MonotonicClock()
    deadline_ns = clock.now_ns() + 50_000_000
    clock.sleep_until_ns(deadline_ns)
    assert clock.now_ns() >= deadline_ns
    assert any(moment_ns < deadline_ns for moment_ns in interruption)


def test_what_a_handler_raises_ends_the_sleep() -> None:
    def interrupt(_number: int, _frame: object) -> None:
        raise InterruptedError

    previous = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    clock = MonotonicClock()
    deadline_ns = clock.now_ns() + 60 * 10**9
    try:
        with pytest.raises(InterruptedError):
            clock.sleep_until_ns(deadline_ns)
    finally:
        signal.signal(signal.SIGALRM, previous)
    assert clock.now_ns() < deadline_ns


# --- privileges -----------------------------------------------------------------------------------


def acquire(*limits: int, core: int = -1) -> list[str]:
    """What a process got: as an ordinary user with limits, or as we are."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ACQUIRE, str(core), *map(str, limits)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.stderr == "not allowed\n":
        pytest.skip("limits cannot be raised here (CAP_SYS_RESOURCE)")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()


CORES = len(os.sched_getaffinity(0))
RELEASED = f"False True 0 {CORES} False True"


@pytest.mark.system
@needs_root
def test_root_gets_everything() -> None:
    core = max(os.sched_getaffinity(0))
    assert acquire(core=core) == ["True True 60 1 True False", RELEASED]


@pytest.mark.system
@needs_root
def test_limits_are_enough_without_any_capability() -> None:
    lines = acquire(60, 60, -1, -1)
    assert lines == [f"True True 60 {CORES} True False", RELEASED]


@pytest.mark.system
@needs_root
def test_soft_limits_are_raised() -> None:
    lines = acquire(0, 98, 65536, -1)
    assert lines == [f"True True 60 {CORES} True False", RELEASED]


@pytest.mark.system
@needs_root
def test_an_ordinary_user_hears_what_is_missing_and_goes_on() -> None:
    memory, priority, got, after = acquire(0, 0, 65536, 65536)

    assert re.search(r"\b64 KiB .*memlock unlimited", memory)
    assert re.search(r"SCHED_FIFO 60 .*\b0; .*rtprio 60", priority)
    for sentence in (memory, priority):
        assert "/etc/security/limits.d/armature.conf" in sentence
    assert got == f"False False 0 {CORES} False False"
    assert after == RELEASED


@pytest.mark.system
@needs_root
def test_a_lower_priority_is_better_than_none() -> None:
    sentence, got, _ = acquire(20, 20, -1, -1)
    assert re.search(r"\b20\b.*\b60\b", sentence)
    assert got == f"True True 20 {CORES} True False"


@pytest.mark.system
def test_a_core_that_is_not_there() -> None:
    lines = acquire(core=1023)
    assert re.search(r"core 1023 .*0.*timing\.core", lines[0])
    assert lines[-1].startswith("False ")
