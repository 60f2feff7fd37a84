"""The real clock of the loop, and what it asks of the kernel to keep its deadlines.

Nothing here is needed to run: without a privilege the loop is late now and then, and reports so.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import gc
import os
import re
import resource
import time
from collections.abc import Iterator
from pathlib import Path

from daq.robot import Timing

CPU_LATENCY = "/dev/cpu_dma_latency"
_NS_PER_S = 1_000_000_000
_CLOCK, _TIMER_ABSTIME = time.CLOCK_MONOTONIC, 1
_MCL_CURRENT, _MCL_FUTURE = 1, 2
CAP_IPC_LOCK, CAP_SYS_NICE = 14, 23
_LIMITS_FILE = "/etc/security/limits.d/armature.conf"


class _Timespec(ctypes.Structure):
    _fields_ = (("tv_sec", ctypes.c_long), ("tv_nsec", ctypes.c_long))


class MonotonicClock:
    """The kernel's monotonic time, and absolute deadlines on it.

    Signal handlers run while it sleeps, and then it sleeps on; what a handler raises gets out.

    Args:
        spin_ns: Wait this last part before a deadline busily: less jitter for some of a core.
    """

    now_ns = staticmethod(time.monotonic_ns)
    utc_ns = staticmethod(time.time_ns)

    def __init__(self, *, spin_ns: int = 0) -> None:
        self._spin_ns = spin_ns
        self._timespec = _Timespec()
        # All made once. CDLL lets other threads run meanwhile; PyDLL would save 0.03 µs of 0.4.
        self._timespec_pointer = ctypes.byref(self._timespec)
        self._clock_nanosleep = ctypes.CDLL(None).clock_nanosleep

    def sleep_until_ns(self, deadline_ns: int) -> None:
        """Return at the deadline, a time as of `now_ns`; at once if it has passed."""
        timespec = self._timespec
        timespec.tv_sec, timespec.tv_nsec = divmod(deadline_ns - self._spin_ns, _NS_PER_S)
        pointer = self._timespec_pointer
        while self._clock_nanosleep(_CLOCK, _TIMER_ABSTIME, pointer, None) == errno.EINTR:
            pass  # Here the handlers of signals run.
        if self._spin_ns:
            while time.monotonic_ns() < deadline_ns:
                pass


def acquire_privileges(timing: Timing) -> tuple[str, ...]:
    """Take a core, locked memory and a real-time priority, and stop collecting garbage.

    Call it once everything is made: processes that were started before stay as they are, and later
    ones would inherit the core. Never raises; returns a sentence for each thing that could not be
    had.
    """
    gc.collect()
    gc.freeze()
    gc.disable()
    _stay_awake()
    refusals = (*_take_core(timing.core), *_lock_memory(), *_take_priority(timing.priority))
    return tuple(refusals)


def release_privileges() -> None:
    """Be an ordinary process again: any core, pageable memory, no priority, garbage collected."""
    # The kernel lets only the privileged take RESET_ON_FORK back, and it does no harm.
    os.sched_setscheduler(0, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, os.sched_param(0))
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    ctypes.CDLL(None).munlockall()
    gc.unfreeze()
    gc.enable()


def _stay_awake() -> None:
    """Keep the processors from sleeping deeply, for as long as this process has the file open.

    Waking up from such a sleep is what makes most wake-ups late. It is root's to ask for; without
    it the loop runs as well, a little later each time.
    """
    with contextlib.suppress(OSError):
        file = os.open(CPU_LATENCY, os.O_WRONLY | os.O_CLOEXEC)
        os.write(file, bytes(4))


def _take_core(core: int | None) -> Iterator[str]:
    if core is None:
        return
    allowed = sorted(os.sched_getaffinity(0))
    try:
        os.sched_setaffinity(0, {core})
    except OSError as error:
        yield (
            f"core {core} cannot be used ({error.strerror}): this process may use "
            f"{', '.join(map(str, allowed))}; change timing.core in the robot file"
        )


def _lock_memory() -> Iterator[str]:
    remedy = f"run it as a service, or add `@armature - memlock unlimited` to {_LIMITS_FILE}"
    limit = _raise_limit(resource.RLIMIT_MEMLOCK)
    if limit != resource.RLIM_INFINITY and not is_capable(CAP_IPC_LOCK):
        # Locking up to a limit is worse than not locking: the allocation that crosses it fails.
        yield (
            f"memory is not locked, pages may be swapped out: the limit is {limit >> 10} KiB and "
            f"must be unlimited; {remedy}"
        )
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(_MCL_CURRENT | _MCL_FUTURE):
        reason = os.strerror(ctypes.get_errno())
        yield f"memory is not locked, pages may be swapped out ({reason}); {remedy}"


def _take_priority(priority: int) -> Iterator[str]:
    limit = _raise_limit(resource.RLIMIT_RTPRIO)
    # Threads and processes started from here on must not inherit a priority that starves the loop.
    policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
    remedy = f"run it as a service, or add `@armature - rtprio {priority}` to {_LIMITS_FILE}"
    for attempt in (priority, *([limit] if 0 < limit < priority else [])):
        try:
            os.sched_setscheduler(0, policy, os.sched_param(attempt))
        except OSError as error:
            reason = error.strerror
            continue
        if attempt < priority:
            yield f"real-time priority {attempt} in place of {priority}: the limit; {remedy}"
        return
    yield (
        f"no real-time priority, wake-ups may come milliseconds late: SCHED_FIFO {priority} was "
        f"refused ({reason}), the limit is {limit}; {remedy}"
    )


def _raise_limit(which: int) -> int:
    """Raise a limit of this process as far as allowed, and return it."""
    _, hard = resource.getrlimit(which)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(which, (hard, hard))
    return resource.getrlimit(which)[0]


def is_capable(capability: int, root: Path = Path("/")) -> bool:
    """Whether this process has a capability; root in a container may lack it."""
    try:
        status = (root / "proc/self/status").read_text(errors="replace")
    except OSError:
        return False
    effective = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return effective is not None and bool(int(effective[1], 16) >> capability & 1)
