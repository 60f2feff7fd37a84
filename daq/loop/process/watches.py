"""Watches gateway and recorder: their reports, and that there were none for too long.

Neither stops the motors: a robot that moves well is not stopped by what happens to its clients, nor
by a recorder that is dead or hangs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from daq.loop.events import Events
from daq.stream.messages import RecorderReport

if TYPE_CHECKING:
    # ZeroMQ with it, which a loop without clients does not need.
    from daq.stream.gateway.link import GatewayLink

SILENT_AFTER_S = 3.0


class RecorderWatch:
    """Keeps the last `report`, None before there was any."""

    def __init__(self, events: Events, *, now_ns: Callable[[], int]) -> None:
        self.report: RecorderReport | None = None
        self._events = events
        self._now_ns = now_ns
        self._reported_ns = 0
        self._is_silent = False

    @property
    def age_s(self) -> float | None:
        """Time since the last report."""
        return None if self.report is None else (self._now_ns() - self._reported_ns) * 1e-9

    @property
    def is_heard(self) -> bool:
        """Whether there is a recorder, and it reports."""
        age_s = self.age_s
        return age_s is not None and age_s <= SILENT_AFTER_S

    def take(self, report: RecorderReport) -> None:
        """Take a report, and note what is new in it."""
        before, self.report = self.report, report
        self._reported_ns = self._now_ns()
        if self._is_silent or before is None:
            self._is_silent = False
            self._say("the recorder reports")
        if report.problem != (before.problem if before else ""):
            if report.problem:
                self._say(report.problem, severity="error")
            else:
                self._say("the recorder's problem is over")
        if before is not None and report.fault_file not in ("", before.fault_file):
            self._say(f"the fault is saved in {report.fault_file}")
        missing = report.missing - (before.missing if before else 0)
        if missing > 0:
            self._say(f"{missing} samples could not be recorded", severity="error")

    def check(self) -> None:
        """Check that the recorder still reports; called now and then."""
        age_s = self.age_s
        if age_s is not None and age_s > SILENT_AFTER_S and not self._is_silent:
            self._is_silent = True
            text = f"no report from the recorder for {age_s:.1f} s: it is dead or hangs"
            self._say(f"{text}; samples are kept for 60 s", severity="error")

    def _say(self, text: str, *, severity: str = "info") -> None:
        self._events.add("recorder", text, severity=severity, source="recorder")


class GatewayWatch:
    """Turns the gateway's reports into events."""

    def __init__(self, gateway: GatewayLink, events: Events, *, now_ns: Callable[[], int]) -> None:
        self._gateway = gateway
        self._events = events
        self._now_ns = now_ns
        self._heard_ns = now_ns()
        self._life = 1
        self._is_silent = False

    def check(self) -> None:
        """Take the latest report, or note that there is none; called now and then."""
        report = self._gateway.read_report()
        now_ns = self._now_ns()
        if report is None:
            if now_ns - self._heard_ns > SILENT_AFTER_S * 1e9 and not self._is_silent:
                self._is_silent = True
                text = f"the gateway to clients has been silent for {SILENT_AFTER_S:g} s"
                then = "no command gets through; samples are kept for 60 s"
                self._say("silence", f"{text}: {then}", "error")
            return
        self._heard_ns = now_ns
        if report.life != self._life:
            self._life = report.life
            text = f"the gateway to clients broke down and was started again ({report.life - 1})"
            self._say("restart", f"{text}; clients connect again by themselves", "warning")
        if report.problem:
            self._say("problem", f"the gateway cannot let clients in: {report.problem}", "error")
        elif self._is_silent:
            self._is_silent = False
            self._say("silence", "the gateway to clients answers again", "info")

    def _say(self, source: str, text: str, severity: str) -> None:
        self._events.add("gateway", text, severity=severity, source=source)
