"""What the loop says of its gateway."""

from __future__ import annotations

from daq.loop.events import Events
from daq.loop.process.watches import GatewayWatch
from daq.stream.gateway.packets import GatewayReport


class Gateway:
    """Says what it is told to."""

    def __init__(self) -> None:
        self.report: GatewayReport | None = None

    def read_report(self) -> GatewayReport | None:
        report, self.report = self.report, None
        return report


class Rig:
    """A watch, with a clock of its own."""

    def __init__(self) -> None:
        self.gateway, self.events, self.now_ns = Gateway(), Events(), 0
        self.watch = GatewayWatch(self.gateway, self.events, now_ns=lambda: self.now_ns)

    def check(self, after_s: float, report: GatewayReport | None = None) -> list[tuple[str, str]]:
        """What is said when that much time has passed and a report came, or none."""
        self.now_ns += round(after_s * 1e9)
        self.gateway.report = report
        self.watch.check()
        events = self.events.take()
        assert all(event.kind == "gateway" for event in events)
        return [(event.severity, event.source, event.text) for event in events]


def test_a_good_gateway_is_not_worth_a_word() -> None:
    rig = Rig()
    assert rig.check(0.5, GatewayReport(1)) == []
    assert rig.check(2.9) == []
    assert rig.check(0.5, GatewayReport(1, dropped=4)) == []


def test_silence_is_said_once_and_its_end_too() -> None:
    rig = Rig()
    ((severity, source, text),) = rig.check(3.1)
    assert (severity, source, "3 s" in text) == ("error", "silence", True)
    assert rig.check(60.0) == []
    ((severity, source, _),) = rig.check(0.1, GatewayReport(1))
    assert (severity, source) == ("info", "silence")


def test_a_restart_is_said() -> None:
    rig = Rig()
    ((severity, source, text),) = rig.check(0.5, GatewayReport(3))
    assert (severity, source, "(2)" in text) == ("warning", "restart", True)
    assert rig.check(0.5, GatewayReport(3)) == []


def test_a_problem_is_said() -> None:
    rig = Rig()
    problem = "tcp://a: a test's"
    ((severity, source, text),) = rig.check(0.5, GatewayReport(1, problem=problem))
    assert (severity, source, problem in text) == ("error", "problem", True)
