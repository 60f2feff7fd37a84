"""Watches the gateway: that it was started again, or is silent for too long.

Neither stops the motors: a robot that moves well is not stopped by what happens to its clients.
"""

from __future__ import annotations

from collections.abc import Callable

from daq.loop.events import Events
from daq.stream.gateway.link import GatewayLink

SILENT_AFTER_S = 3.0


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
