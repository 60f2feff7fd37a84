"""Makes the loop's answer to the command `status`."""

from __future__ import annotations

import math
from collections.abc import Callable

from daq.boards.board import Outcome
from daq.loop.cycle import Cycle
from daq.loop.io.loop_board import LoopBoard
from daq.loop.lease_keeper import LeaseKeeper
from daq.loop.process.watches import RecorderWatch
from daq.loop.tracks.track import Track
from daq.robot.description import DrivenRobot
from daq.samples.batches import Event, Session
from daq.stream.messages import BoardStatus, JointStatus, LoopStatus

_LOST = ("lost_commands", "lost_replies", "stale", "stalled", "truncated")


class StatusMaker:
    """Collects the status from the loop's parts."""

    def __init__(
        self,
        robot: DrivenRobot,
        session: Session,
        cycle: Cycle,
        recorder: RecorderWatch,
        lease: LeaseKeeper,
        *,
        now_ns: Callable[[], int],
        dropped: Callable[[], int] = lambda: 0,
        is_mock: bool = False,
    ) -> None:
        self._robot = robot
        self._session = session
        self._cycle = cycle
        self._recorder = recorder
        self._lease = lease
        self._now_ns = now_ns
        self._dropped = dropped
        self._is_mock = is_mock
        self.privileges: tuple[str, ...] = ()

    def __call__(self) -> LoopStatus:
        """Return the status now."""
        cycle, session = self._cycle, self._session
        machine = cycle.machine
        counters = [unit.board.counters for unit in cycle.units]
        unit_of = {axis: unit for unit in cycle.units for axis in unit.axes}
        return LoopStatus(
            state=machine.state.name.lower(),
            reason=machine.reason,
            is_fault_of_board=machine.is_tripped and machine.is_fault_of_board,
            trip_code=machine.trip_code,
            pause_ms=machine.pause_ms,
            session=session.session,
            robot=self._robot.name,
            link=session.link,
            is_mock=self._is_mock,
            is_virtual=session.is_virtual,
            uptime_s=(self._now_ns() - session.start_t_ns) * 1e-9,
            seq=cycle.seq,
            cycles=cycle.seq,
            skipped=cycle.skipped,
            lost=sum(getattr(each, name) for each in counters for name in _LOST),
            corrupt=sum(each.corrupt for each in counters),
            publish_dropped=self._dropped(),
            wake_us=cycle.wake.quantiles(),
            work_us=cycle.work.quantiles(),
            held_by=self._lease.holder,
            is_at_rest=cycle.control.is_at_rest,
            trajectories=cycle.control.trajectories,
            joints=tuple(_joint(track, unit_of[track.axis]) for track in cycle.control.tracks),
            boards=tuple(_board(unit) for unit in cycle.units),
            recording=cycle.output.recording_name,
            recorder=self._recorder.report,
            recorder_age_s=self._recorder.age_s,
            privileges=self.privileges,
            events=tuple(self._line(event) for event in cycle.events.latest),
        )

    def _line(self, event: Event) -> str:
        severity = "" if event.severity == "info" else f"{event.severity}: "
        return f"{(event.t_ns - self._session.start_t_ns) * 1e-9:.1f} s: {severity}{event.text}"


def _joint(track: Track, unit: LoopBoard) -> JointStatus:
    axis = track.axis
    is_known = unit.replies is not None and not unit.missed
    degc = math.nan if unit.replies is None else axis.temperature_degc(unit.replies)
    return JointStatus(
        name=axis.joint.name,
        mode=track.mode.name.lower(),
        is_homed=axis.is_homed,
        position_rad=axis.position_rad if is_known and unit.knows_position(axis) else None,
        velocity_rad_s=axis.velocity_rad_s if is_known else None,
        torque_nm=axis.nm_per_a * axis.iq_a if is_known else None,
        iq_a=axis.iq_a if is_known else None,
        winding_temperature_degc=None if math.isnan(degc) else degc,
        current_max_a=axis.isat_a,
    )


def _board(unit: LoopBoard) -> BoardStatus:
    counters = unit.board.counters
    return BoardStatus(
        name=unit.port.name,
        device=unit.board.link.name,
        profile=unit.board.profile.name,
        outcome="no exchange" if unit.outcome is Outcome.NO_EXCHANGE else unit.outcome.name.lower(),
        fault=unit.fault.meaning if unit.fault is not None else "",
        bus_voltage_v=None if math.isnan(unit.bus_voltage_v) else unit.bus_voltage_v,
        counters={name: getattr(counters, name) for name in counters.__slots__},
    )
