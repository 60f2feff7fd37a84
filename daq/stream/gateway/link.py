"""The loop's end of its gateway: starts it, hands it samples, and hears how it is doing."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

import msgspec

from daq.stream.endpoints import check_endpoint, robot_endpoints
from daq.stream.errors import BindError
from daq.stream.gateway.packets import (
    GatewayReport,
    GatewaySettings,
    Kind,
    make_pair,
    stream_packet,
)
from daq.stream.keys import Keys
from daq.system.runtime_directory import RuntimeDirectory

START_MAX_S = 20.0
"""A busy computer takes long to start a Python; the sockets of a killed loop may be in the way."""
_END_MAX_S = 2.0
_REPORT_MAX_BYTES = 4096


class GatewayLink:
    """A gateway process and the pairs that lead to it.

    Args:
        runtime: Where its local sockets are. Hold a `RuntimeLock`.
        bind: Further addresses `tcp://HOST:PORT`.
        keys: The robot's keys, needed for those.
        plotjuggler_port: Publish for PlotJuggler on this port of the loopback interface.
        errand: A program that `run_errand` has started outside of this process; empty for none.

    Raises:
        ConfigError: An address that is open to everyone.
        BindError: An address that the system refuses.

    Attributes:
        commands: Our end of the command pair; see `daq.stream.gateway.command_port`.
    """

    def __init__(
        self,
        runtime: RuntimeDirectory,
        *,
        bind: Sequence[str] = (),
        keys: Keys | None = None,
        plotjuggler_port: int | None = None,
        errand: Sequence[str] = (),
    ) -> None:
        further = [robot_endpoints(address) for address in bind]
        for endpoint in (end for ends in further for end in ends):
            check_endpoint(endpoint, keys)
        settings = GatewaySettings(
            lock=str(runtime.path / "gateway.lock"),
            stream=(runtime.stream, *(ends.stream for ends in further)),
            commands=(runtime.commands, *(ends.commands for ends in further)),
            keys=None if keys is None else str(keys.directory),
            plotjuggler_port=plotjuggler_port,
            errand=tuple(errand),
        )
        self._stream, stream = make_pair()
        self.commands, commands = make_pair()
        self._errand, asked = make_pair()
        with stream, commands, asked:
            ends = (stream.fileno(), commands.fileno(), asked.fileno())
            words = [*map(str, ends), msgspec.json.encode(settings).decode()]
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "daq.stream.gateway.keeper", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=ends,
                # Ctrl-C is for the loop, whose last samples still have to be published.
                start_new_session=True,
            )
        self._decode_report = msgspec.json.Decoder(GatewayReport).decode
        self._encode_values = msgspec.msgpack.Encoder().encode
        self._unsent = 0
        self._unheard_before = 0
        self._report = GatewayReport(life=0)

    @property
    def dropped(self) -> int:
        """How often something did not fit, on the way to the gateway or to a subscriber.

        A subscriber sees its losses by the sequence numbers; the spool has them for a minute.
        """
        return self._unsent + self._unheard_before + self._report.dropped

    def wait_until_open(self, timeout_s: float = START_MAX_S) -> None:
        """Wait until clients can come.

        Raises:
            BindError: They cannot; says why.
        """
        deadline_s = time.monotonic() + timeout_s
        while (report := self.read_report()) is None:
            remaining_s = deadline_s - time.monotonic()
            if remaining_s <= 0.0:
                problem = f"the gateway to clients did not start within {timeout_s:g} s"
                raise BindError(problem, code="not-started")
            if self._process.poll() is not None:
                problem = f"the gateway to clients ended with {self._process.returncode}"
                raise BindError(problem, code="ended")
            select.select([self._stream], [], [], min(remaining_s, 0.1))
        if report.problem:
            raise BindError(report.problem, code="not-opened")

    # --- in the loop's cycle: nothing of this waits or raises -------------------------------------

    def publish(self, header: bytes, payload: bytes) -> None:
        """Publish a batch."""
        self._send(Kind.BATCH, header, payload)

    def publish_session(self, data: bytes) -> None:
        """Publish what a new subscriber must know; once a second."""
        self._send(Kind.SESSION, data)

    def plot(self, t_s: float, values: Mapping[str, float | bool]) -> None:
        """Publish values of one moment for PlotJuggler.

        Args:
            t_s: When, in the clock that shall be on PlotJuggler's time axis.
            values: By name; `/` in names makes PlotJuggler's tree. Numbers and booleans only.
        """
        self._send(Kind.PLOT, b"%.6f" % t_s, self._encode_values(values))

    def run_errand(self) -> bool:
        """Have the errand's program started by the keeper; False if that cannot be asked."""
        try:
            return bool(self._errand.send(b"!"))
        except OSError:
            return False

    def read_report(self) -> GatewayReport | None:
        """Return what the gateway has said since the last time, None for nothing."""
        try:
            report = self._decode_report(self._stream.recv(_REPORT_MAX_BYTES))
        except (OSError, msgspec.MsgspecError):  # nothing there, or it is gone
            return None
        if report.life != self._report.life:
            self._unheard_before += self._report.dropped
        self._report = report
        return report

    def _send(self, kind: Kind, first: bytes, second: bytes = b"") -> None:
        try:
            self._stream.sendmsg(stream_packet(kind, first, second))
        except OSError:  # full, or the gateway is gone
            self._unsent += 1

    # --- the end ----------------------------------------------------------------------------------

    def close(self, timeout_s: float = _END_MAX_S) -> None:
        """Let everything be published, and end the gateway."""
        self._stream.close()
        self.commands.close()
        self._errand.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
        # A process that is left hangs.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    @property
    def pid(self) -> int:
        """Process id of the gateway's keeper."""
        return self._process.pid
