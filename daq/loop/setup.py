"""Puts the loop's parts together; opens nothing and starts nothing."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from daq.boards.board import Board
from daq.boards.wire_limits import wire_problems
from daq.control.braking import greatest_gravities_nm, greatest_inertias_kg_m2
from daq.control.torque_model import TorqueModel
from daq.errors import ConfigError
from daq.loop.cycle import Cycle
from daq.loop.events import Events
from daq.loop.handler import Handler
from daq.loop.io.loop_board import LoopBoard
from daq.loop.lease_keeper import LeaseKeeper
from daq.loop.output import Output, Sink
from daq.loop.process.status import StatusMaker
from daq.loop.process.watches import RecorderWatch
from daq.loop.safety.axis_guard import AxisGuard
from daq.loop.safety.board_watch import BoardWatch
from daq.loop.safety.current_limits import CurrentLimits
from daq.loop.safety.loads import Loads
from daq.loop.safety.machine import Machine
from daq.loop.safety.monitor import BoardGuard, DeadlineBudget
from daq.loop.safety.motion_guard import MotionGuard
from daq.loop.safety.rest_watch import RestWatch
from daq.loop.safety.standstill import StandstillGuard
from daq.loop.safety.stop import SafeStop
from daq.loop.schedule import Chore
from daq.loop.tracks.control import LoopControl
from daq.motion.torque_check import TorqueCheck
from daq.robot.description import DrivenRobot
from daq.samples.batches import SCHEMA, BoardInfo, Event, Session
from firmware_protocol.fingerprint import fingerprint

PERIOD_NS = 1_000_000


@dataclass(frozen=True, slots=True)
class Loop:
    """The parts that others talk to."""

    cycle: Cycle
    handler: Handler
    status: StatusMaker
    recorder: RecorderWatch
    boards: BoardWatch
    lease: LeaseKeeper


def make_session(
    robot_text: str,
    robot_source: str,
    boards: Sequence[Board],
    *,
    link: str,
    version: str,
    commit: str = "",
    start_t_ns: int,
    start_utc_ns: int,
    is_virtual: bool,
) -> Session:
    """Return what readers must know of a run; it starts at a monotonic and at a Unix time."""
    started = time.strftime("%Y%m%dT%H%M%S", time.gmtime(start_utc_ns // 1_000_000_000))
    return Session(
        schema=SCHEMA,
        session=f"{'virtual' if is_virtual else started}-{secrets.token_hex(4)}",
        fingerprint="+".join(fingerprint(board.profile) for board in boards),
        robot_text=robot_text,
        robot_source=robot_source,
        boards=tuple(
            BoardInfo(
                name=board.name,
                profile=board.profile.name,
                framing=board.link.framing.value,
                device=board.link.name,
                wire_s=8.0 * board.profile.frame_size / board.link.clock_hz,
            )
            for board in boards
        ),
        period_ns=PERIOD_NS,
        start_utc_ns=start_utc_ns,
        start_t_ns=start_t_ns,
        host=socket.gethostname(),
        armature_version=version,
        commit=commit,
        is_virtual=is_virtual,
        link=link,
    )


def make_loop(
    robot: DrivenRobot,
    boards: Sequence[Board],
    session: Session,
    sinks: Sequence[Sink],
    *,
    now_ns: Callable[[], int],
    utc_ns: Callable[[], int],
    listener: Callable[[tuple[Event, ...]], None] | None = None,
    dropped: Callable[[], int] = lambda: 0,
    profile: str | None = None,
    is_armed: bool = True,
    is_mock: bool = False,
    model: TorqueModel | None = None,
) -> Loop:
    """Build the loop of a robot on open boards, which are in the robot file's order.

    The first sink gets each batch at once, the others in the next cycle. `dropped` says how many
    batches could not be published; `profile` is a wire format in place of the robot file's; `model`
    says what torques the robot takes, None where that is not known.

    Raises:
        ConfigError: The robot's limits do not fit its boards.
    """
    problems = wire_problems(robot, profile=profile, rate_hz=1e9 / PERIOD_NS)
    if problems:
        raise ConfigError(session.robot_source, problems)
    period_s = PERIOD_NS * 1e-9
    events = Events()
    units = [
        LoopBoard(port, board, robot, period_s=period_s)
        for port, board in zip(robot.boards, boards, strict=True)
    ]
    axes = sorted((axis for unit in units for axis in unit.axes), key=lambda axis: axis.number)
    for axis, inertia_kg_m2 in zip(axes, greatest_inertias_kg_m2(robot, model), strict=True):
        axis.inertia_max_kg_m2 = inertia_kg_m2
    torques = None
    if model is not None:
        torques = TorqueCheck(
            robot.joints,
            model,
            [axis.current_max_a * abs(axis.nm_per_a) for axis in axes],
            inertias_max_kg_m2=[axis.inertia_max_kg_m2 for axis in axes],
            gravities_max_nm=greatest_gravities_nm(robot, model),
            period_s=period_s,
        )
    stop = SafeStop(robot, units, events, model=model, now_ns=now_ns)
    machine = Machine(units, events, stop, period_s=period_s)
    control = LoopControl(
        axes,
        events,
        period_s=period_s,
        catch_up_max=max(port.command_timeout_ms for port in robot.boards),
        torques=torques,
    )
    loads = Loads(robot, axes, model, torques.gravity_scales if torques else None)
    motion = MotionGuard(control, loads, machine, events, robot.safety)

    def guard(unit: LoopBoard) -> BoardGuard:
        guards = [
            AxisGuard(
                axis,
                unit,
                robot.safety,
                machine,
                motion=motion,
                standstill=StandstillGuard(axis, loads.of[axis.number], control, machine, events),
            )
            for axis in unit.axes
        ]
        return BoardGuard(unit, guards, robot.bus, robot.safety, machine)

    board_guards = [guard(unit) for unit in units]
    cycle = Cycle(
        units,
        board_guards,
        machine=machine,
        control=control,
        output=Output(session, events, sinks, utc_ns=utc_ns, listener=listener),
        events=events,
        budget=DeadlineBudget(robot.safety.skipped_max_per_s, machine, events, period_ns=PERIOD_NS),
        now_ns=now_ns,
    )

    rest_watch = RestWatch(axes)
    currents = CurrentLimits(units, loads.of, machine, events, robot.safety)

    def look_at_motion() -> None:
        rest_watch.look()
        loads.check()
        currents.check()
        for each in board_guards:
            each.check_standing()
        motion.check()

    cycle.schedule[Chore.FOLLOWING] = look_at_motion
    board_watch = BoardWatch(units, events, now_ns=now_ns)
    cycle.schedule[Chore.BOARDS] = board_watch.check
    recorder = RecorderWatch(events, now_ns=now_ns)
    lease = LeaseKeeper(cycle, session)
    status = StatusMaker(
        robot, session, cycle, recorder, lease, now_ns=now_ns, dropped=dropped, is_mock=is_mock
    )
    handler = Handler(
        robot,
        cycle,
        recorder,
        status,
        board_watch,
        rest=rest_watch,
        lease=lease,
        period_s=period_s,
        is_armed=is_armed,
    )
    cycle.schedule[Chore.PROMISES] = handler.step
    return Loop(cycle, handler, status, recorder, board_watch, lease)
