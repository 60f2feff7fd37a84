"""The loop as a process: gateway, spool, privileges, signals, systemd. Real time only."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import FrameType

from daq.boards.board import Board
from daq.control.torque_model import load_torque_model
from daq.loop.process.event_log import EventLog, EventWriter
from daq.loop.process.fault_watch import FaultWatch
from daq.loop.process.watches import GatewayWatch
from daq.loop.runner import Ending, Runner
from daq.loop.schedule import Chore
from daq.loop.setup import PERIOD_NS, Loop, make_loop
from daq.robot.description import DrivenRobot
from daq.samples.batches import (
    KIND_BATCH,
    KIND_SESSION,
    SAMPLES_PER_BATCH,
    Session,
    encode_session,
    frame_record,
)
from daq.samples.spool import SpoolWriter
from daq.service.notify import Notifier
from daq.stream.gateway.command_port import CommandPort
from daq.stream.gateway.link import GatewayLink
from daq.stream.keys import Keys
from daq.stream.messages import LoopStatus
from daq.system.realtime import MonotonicClock, acquire_privileges, release_privileges
from daq.system.runtime_directory import RuntimeDirectory, RuntimeLock
from daq.system.signals import SAFE_STOPS, handled

_OLD_SPOOLS_KEPT = 5
_SESSION_EVERY = 50
"""Batches: once a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How the daemon runs.

    Attributes:
        bind: Further addresses `tcp://HOST:PORT`.
        keys: The robot's keys, needed for those.
        plotjuggler_port: Publish for PlotJuggler on this port of the loopback interface.
        recording: Begin a recording of this name at once; empty for one of the recorder's choice,
            None for none.
        duration_s: End after so long; None for never.
        profile: Wire format in place of the robot file's.
        is_mock: Whether no real motor can move.
        events_to: A pipe that gets the events, in place of a log.
        fault_saver: The words of a program that saves the last fault from the spool, for when no
            recorder runs; empty for none.
    """

    runtime: RuntimeDirectory
    bind: Sequence[str] = ()
    keys: Keys | None = None
    plotjuggler_port: int | None = None
    recording: str | None = None
    duration_s: float | None = None
    ends_on_fault: bool = False
    profile: str | None = None
    is_armed: bool = False
    is_mock: bool = False
    events_to: int | None = None
    fault_saver: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """How a run of the loop went.

    Attributes:
        elapsed_s: Periods that have passed: cycles and skipped ones.
    """

    status: LoopStatus
    elapsed_s: float
    ending: Ending


class Daemon:
    """A loop in real time, on open boards in the robot file's order."""

    def __init__(
        self, robot: DrivenRobot, boards: Sequence[Board], session: Session, options: Options
    ) -> None:
        self._robot = robot
        self._options = options
        self._session = encode_session(session)
        self._batches = 0
        self._stack = ExitStack()
        with self._stack:
            stack = self._stack
            log = EventLog() if options.events_to is None else EventWriter(options.events_to)
            stack.callback(log.close)
            lock = RuntimeLock(options.runtime.path)
            stack.callback(lock.release)
            self._has_sockets = False
            stack.callback(self._remove_sockets)
            self._notifier = Notifier.from_environment(os.environ)
            stack.callback(self._notifier.close)
            self._gateway = gateway = GatewayLink(
                options.runtime,
                bind=options.bind,
                keys=options.keys,
                plotjuggler_port=options.plotjuggler_port,
                errand=options.fault_saver,
            )
            stack.callback(gateway.close)
            clock = MonotonicClock(spin_ns=round(robot.timing.spin_us * 1e3))
            self.loop: Loop = make_loop(
                robot,
                boards,
                session,
                [self._keep, gateway.publish],
                now_ns=clock.now_ns,
                utc_ns=clock.utc_ns,
                listener=log,
                dropped=lambda: gateway.dropped,
                profile=options.profile,
                is_armed=options.is_armed,
                is_mock=options.is_mock,
                # Loaded before anything is powered: it takes longer than a board waits.
                model=load_torque_model(robot) if options.is_armed else None,
            )
            for old in options.runtime.spools[:-_OLD_SPOOLS_KEPT]:
                for left in options.runtime.path.glob(f"{old.stem}.*"):  # the recorder's marks, too
                    left.unlink(missing_ok=True)
            self._spool = SpoolWriter(
                options.runtime.spool(session.session),
                frame_record(KIND_SESSION, self._session),
                payload_max=SAMPLES_PER_BATCH * self.loop.cycle.layout.size,
            )
            stack.callback(self._spool.close, unlink=False)
            self._commands = CommandPort(gateway.commands, self.loop.handler)
            self._gateway_watch = GatewayWatch(gateway, self.loop.cycle.events, now_ns=clock.now_ns)
            self._fault_watch = FaultWatch(
                self.loop.cycle.machine,
                self.loop.cycle.events,
                self.loop.recorder,
                ask=gateway.run_errand if options.fault_saver else None,
                now_ns=clock.now_ns,
                utc_ns=clock.utc_ns,
                period_s=PERIOD_NS * 1e-9,
            )
            self.loop.cycle.output.note_fault = self._fault_watch.note
            self._clock = clock
            gateway.wait_until_open()
            self._has_sockets = True
            self._stack = stack.pop_all()

    def run(
        self,
        *,
        agenda: Callable[[], None] | None = None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> Result:
        """Run to the end; `agenda` is called once per batch, `is_over` asked in every cycle."""
        options, cycle = self._options, self.loop.cycle
        duration_s = options.duration_s
        runner = Runner(
            cycle,
            self._clock,
            period_ns=PERIOD_NS,
            duration_ns=None if duration_s is None else round(duration_s * 1e9),
            ends_on_fault=options.ends_on_fault,
            is_over=is_over,
        )
        cycle.schedule[Chore.COMMANDS] = self._commands.poll
        cycle.schedule[Chore.HOUSEKEEPING] = self._keep_house
        if agenda is not None:
            cycle.schedule[Chore.AGENDA] = agenda
        if options.plotjuggler_port is not None:
            cycle.schedule[Chore.PLOT] = self._plot
        if options.recording is not None:
            cycle.output.start_recording(options.recording)

        def end(number: int, _frame: FrameType | None) -> None:
            runner.end(number)

        # Until the very end: asked again, it still ends in order.
        with handled(SAFE_STOPS, end):
            ending = self._run(runner)
        return Result(self.loop.status(), runner.elapsed_ns * 1e-9, ending)

    def _run(self, runner: Runner) -> Ending:
        with self._stack:
            self.loop.status.privileges = privileges = acquire_privileges(self._robot.timing)
            for text in privileges:
                self.loop.cycle.events.add("privilege", text, severity="warning", source=text[:40])
            self._notifier.ready()
            try:
                return runner.run()
            finally:
                release_privileges()
                self._fault_watch.finish()
                self._notifier.stopping()

    def _remove_sockets(self) -> None:
        """Remove the sockets' names, which ZeroMQ leaves behind: nobody shall wait there."""
        if self._has_sockets:  # or else they are another loop's
            for name in ("commands", "stream"):
                (self._options.runtime.path / name).unlink(missing_ok=True)

    # --- chores -----------------------------------------------------------------------------------

    def _keep(self, header: bytes, payload: bytes) -> None:
        self._spool.write(frame_record(KIND_BATCH, header, payload))

    def _keep_house(self) -> None:
        """Look after watchdog, session, recorder, gateway and faults; called once per batch."""
        self._batches += 1
        interval_s = self._notifier.watchdog_interval_s
        if interval_s is not None:
            now_ns = self._clock.now_ns()
            if now_ns >= self._ping_ns:
                self._ping_ns = now_ns + round(interval_s * 5e8)
                self._notifier.watchdog()
        if self._batches % _SESSION_EVERY == 1:
            self._gateway.publish_session(self._session)
        self.loop.recorder.check()
        self._gateway_watch.check()
        self._fault_watch.check()

    _ping_ns = 0

    def _plot(self) -> None:
        cycle = self.loop.cycle
        values: dict[str, float | bool] = {"state": cycle.machine.state.value}
        for track in cycle.control.tracks:
            axis, name = track.axis, track.axis.joint.name
            values[f"{name}/position_rad"] = axis.position_rad
            values[f"{name}/velocity_rad_s"] = axis.velocity_rad_s
            values[f"{name}/torque_nm"] = axis.nm_per_a * axis.iq_a
            values[f"{name}/iq_a"] = axis.iq_a
            values[f"{name}/reference_position_rad"] = track.reference[0]
        self._gateway.plot(self._clock.utc_ns() * 1e-9, values)
