"""The keeper of a gateway: the program that `daq.stream.gateway.link` starts.

A process that does next to nothing, so that nothing happens to it; the gateway is its child. One
that breaks down or hangs is replaced. Both end when the loop does, however that ends. What the loop
wants started meanwhile is started here (`daq.stream.gateway.errand`).
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from daq.errors import DaqError
from daq.stream.errors import BindError
from daq.stream.gateway.errand import Errand
from daq.stream.gateway.packets import GatewayReport, GatewaySettings
from daq.stream.gateway.process import Gateway, Pulse, send_report
from daq.stream.keys import load_keys
from daq.system.locks import FileLock, LockHeldError
from daq.system.signals import ignore_safe_stops

MEMORY_MAX_BYTES = 512 << 20
"""Frozen subscribers share what waits for them, so an honest crowd needs a tenth of it."""
_RESTART_FIRST_S, _RESTART_MAX_S = 0.1, 5.0
_LOOK_EVERY_S = 0.1
_LOOKS_IN_VAIN_MAX = 50
"""Looks and not seconds: after a pause of the whole computer all clocks say that it hangs."""
_FAREWELL_MAX_S = 1.5
_LOCK_MAX_S = 5.0
_OOM_SCORE = 500


def main() -> int:
    """Keep a gateway going as long as the loop is there."""
    ignore_safe_stops()  # it ends with the loop, and not before
    stream, commands, asked = (socket.socket(fileno=int(word)) for word in sys.argv[1:4])
    settings = msgspec.json.decode(sys.argv[4], type=GatewaySettings)
    errand = Errand(asked, settings.errand)
    try:
        # Held by us and by every gateway that we start.
        lock = _lock(Path(settings.lock))
        keys = None if settings.keys is None else load_keys(Path(settings.keys))
    except (DaqError, OSError) as error:
        send_report(stream, GatewayReport(1, problem=str(error)))
        return 1
    pulse, life, delay_s = Pulse(), 0, _RESTART_FIRST_S
    while True:
        life += 1
        began_s = time.monotonic()
        child = os.fork()
        if not child:
            lock.sign()  # this one has to end before another can begin
            ends = {"stream": stream, "commands": commands}
            _serve(partial(Gateway, settings, keys, **ends, life=life, pulse=pulse), stream, life)
        if not _keep(child, stream, pulse, errand):
            errand.look()  # the loop may have asked for it with its last breath
            return 0
        # Soon, unless it breaks down again and again.
        is_lasting = time.monotonic() - began_s > _RESTART_MAX_S
        delay_s = _RESTART_FIRST_S if is_lasting else min(2 * delay_s, _RESTART_MAX_S)
        time.sleep(delay_s)


def _keep(child: int, stream: socket.socket, pulse: Pulse, errand: Errand) -> bool:
    """Wait for the end of a gateway, or end it when it hangs; return whether another is needed."""
    hang_up = select.poll()
    hang_up.register(stream, 0)
    gone_s: float | None = None
    looks_in_vain = 0
    while True:
        errand.look()
        looks_in_vain = 0 if pulse.was_felt() else looks_in_vain + 1
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return gone_s is None and bool(os.waitstatus_to_exitcode(status))
        now_s = time.monotonic()
        if gone_s is None and hang_up.poll(0):
            gone_s = now_s  # the loop is: let the rest be published
        is_overdue = gone_s is not None and now_s > gone_s + _FAREWELL_MAX_S
        if is_overdue or looks_in_vain > _LOOKS_IN_VAIN_MAX:
            os.kill(child, signal.SIGKILL)
        time.sleep(_LOOK_EVERY_S)


def _serve(make_gateway: Callable[[], Gateway], stream: socket.socket, life: int) -> None:
    """Run a gateway in this process; never returns."""
    exit_code = 1
    try:
        _limit_ourselves()
        make_gateway().run()
        exit_code = 0
    except BindError as error:
        send_report(stream, GatewayReport(life, problem=str(error)))
        # The first one's problem is told to the user; a later one's may pass.
        exit_code = 0 if life == 1 else 1
    except BaseException:  # the next one has a fresh start
        traceback.print_exc()
    finally:
        os._exit(exit_code)


def _limit_ourselves() -> None:
    """Limit what clients can make of this process, the first to be ended when memory is short."""
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit, value in (
        (resource.RLIMIT_NOFILE, most_files),
        (resource.RLIMIT_DATA, MEMORY_MAX_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(OSError, ValueError):  # stricter already, or not ours to say
            resource.setrlimit(limit, (value, value))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(_OOM_SCORE))


def _lock(path: Path) -> FileLock:
    """Wait for the gateway of a killed loop, which still publishes what that one left.

    Raises:
        BindError: It does not end.
    """
    deadline_s = time.monotonic() + _LOCK_MAX_S
    while True:
        try:
            return FileLock(path)
        except LockHeldError as error:
            if time.monotonic() > deadline_s:
                raise BindError(
                    f"{path}: the gateway of an earlier loop does not end (process "
                    f"{error.holder.process}): end it first",
                    code="earlier-gateway",
                ) from None
        time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main())
