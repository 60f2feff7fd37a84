"""A mock robot that keeps pace with a clock, between the requests of others."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from daq.robot.description import Robot
from hw_mocks.mock_robot import STEP_NS, MockRobot
from hw_mocks.realtime import RealTime

pytestmark = pytest.mark.system

MS_NS = 1_000_000


class FakeClock:
    """Stands where it is put; serving for some time moves it on."""

    def __init__(self, start_ns: int = 123_456_789) -> None:
        self.start_ns = self.time_ns = start_ns
        self.served: list[float] = []
        self.cost_ns = 0

    def now_ns(self) -> int:
        return self.time_ns

    def serve(self, timeout_s: float) -> None:
        self.served.append(timeout_s)
        self.time_ns += round(timeout_s * 1e9) + self.cost_ns

    def stop_after(self, elapsed_ns: int) -> Callable[[], bool]:
        return lambda: self.time_ns - self.start_ns >= elapsed_ns


@pytest.fixture
def robot(bench: Robot) -> MockRobot:
    return MockRobot(bench)


def test_the_simulation_is_never_more_than_a_step_behind(robot: MockRobot) -> None:
    clock = FakeClock()
    real_time = RealTime(robot, clock.serve, now_ns=clock.now_ns)
    for elapsed_ms in range(1, 50):
        real_time.run(clock.stop_after(elapsed_ms * MS_NS))
        assert 0 <= clock.time_ns - clock.start_ns - robot.now_ns < STEP_NS


def test_requests_are_served_between_any_two_steps(robot: MockRobot) -> None:
    clock = FakeClock()
    real_time = RealTime(robot, clock.serve, now_ns=clock.now_ns)
    real_time.run(clock.stop_after(10 * MS_NS))
    assert len(clock.served) >= 2 * 40
    assert max(clock.served) <= 1e-3
    assert clock.served.count(0.0) == robot.now_ns // STEP_NS


def test_serving_takes_time_that_is_caught_up(robot: MockRobot) -> None:
    clock = FakeClock()
    real_time = RealTime(robot, clock.serve, now_ns=clock.now_ns)
    clock.cost_ns = 90_000
    real_time.run(clock.stop_after(100 * MS_NS))
    assert clock.time_ns - clock.start_ns - robot.now_ns < 2 * MS_NS


def test_after_a_long_absence_time_stood_still(robot: MockRobot) -> None:
    clock = FakeClock()
    real_time = RealTime(robot, clock.serve, now_ns=clock.now_ns)
    real_time.run(clock.stop_after(5 * MS_NS))
    before_ns = robot.now_ns
    clock.time_ns += 500 * MS_NS
    real_time.run(clock.stop_after(506 * MS_NS))
    assert 20 * MS_NS <= robot.now_ns - before_ns <= 22 * MS_NS
    # And from there on it keeps pace again.
    start_ns, before_ns = clock.time_ns, robot.now_ns
    real_time.run(lambda: clock.time_ns - start_ns >= 30 * MS_NS)
    assert robot.now_ns - before_ns == pytest.approx(30 * MS_NS, abs=STEP_NS)


def test_a_short_absence_is_made_up_for(robot: MockRobot) -> None:
    clock = FakeClock()
    real_time = RealTime(robot, clock.serve, now_ns=clock.now_ns)
    clock.time_ns += 19 * MS_NS
    real_time.run(clock.stop_after(20 * MS_NS))
    assert robot.now_ns == pytest.approx(20 * MS_NS, abs=STEP_NS)


def test_simulated_time_is_known_between_steps(robot: MockRobot) -> None:
    clock = FakeClock()
    real_time = RealTime(robot, clock.serve, now_ns=clock.now_ns)
    clock.time_ns += 100_001
    assert real_time.now_ns == 100_001
    assert robot.now_ns == 0
    # It does not run ahead over an absence that will be left out.
    clock.time_ns += 900 * MS_NS
    assert real_time.now_ns == 20 * MS_NS
    real_time.run(clock.stop_after(901 * MS_NS))
    assert real_time.now_ns == pytest.approx(21 * MS_NS, abs=MS_NS)


def test_a_robot_that_has_run_before_goes_on_from_there(robot: MockRobot) -> None:
    robot.advance_to(7 * MS_NS)
    clock = FakeClock()
    real_time = RealTime(robot, clock.serve, now_ns=clock.now_ns)
    real_time.run(clock.stop_after(10 * MS_NS))
    assert robot.now_ns == pytest.approx(17 * MS_NS, abs=STEP_NS)


def test_on_the_monotonic_clock_it_keeps_pace(robot: MockRobot) -> None:
    """Generously: this machine is now and then away for tens of milliseconds."""
    started_s = time.monotonic()
    RealTime(robot, time.sleep).run(lambda: time.monotonic() - started_s > 0.4)
    elapsed_s = time.monotonic() - started_s
    assert 0.2 * elapsed_s < robot.now_ns * 1e-9 <= elapsed_s


def test_the_arm_is_simulated_well_faster_than_real_time(arm4: Robot) -> None:
    robot = MockRobot(arm4)
    fastest = 0.0
    for _ in range(5):
        started_s = time.process_time()  # other work on the machine does not count
        robot.advance_to(robot.now_ns + 100 * MS_NS)
        fastest = max(fastest, 0.1 / (time.process_time() - started_s))
    assert fastest > 3.0


def test_who_serves_may_advance_the_simulation_up_to_the_present(robot: MockRobot) -> None:
    clock = FakeClock()

    def serve(timeout_s: float) -> None:
        clock.serve(timeout_s)
        robot.advance_to(real_time.now_ns)

    real_time = RealTime(robot, serve, now_ns=clock.now_ns)
    clock.cost_ns = 300_000
    real_time.run(clock.stop_after(50 * MS_NS))
    assert 0 <= clock.time_ns - clock.start_ns - robot.now_ns < STEP_NS


def test_a_moment_of_the_clock_has_its_simulated_time(robot: MockRobot) -> None:
    clock = FakeClock()
    real_time = RealTime(robot, clock.serve, now_ns=clock.now_ns)
    clock.time_ns += 5 * MS_NS
    assert real_time.simulated_ns(clock.start_ns + 2 * MS_NS) == 2 * MS_NS
    assert real_time.simulated_ns(clock.start_ns + 900 * MS_NS) == 20 * MS_NS
