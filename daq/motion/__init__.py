"""Motion that is pure computation: moves, trajectories, their limits, and homing. No boards."""

from daq.motion.errors import HomingError, MotionError, MotionLimitError, TrajectoryFileError
from daq.motion.homing import Home, IndexSearch, locate_zero
from daq.motion.limits import RowChecker, check_rows
from daq.motion.motion import Motion, Row
from daq.motion.moves import QuinticMove, Sequence, SpeedChange, Standstill
from daq.motion.planning import plan_move, plan_playback, plan_speed, stop_move
from daq.motion.playback import Playback
from daq.motion.trajectory_file import Trajectory, read_trajectory, write_trajectory

__all__ = [
    "Home",
    "HomingError",
    "IndexSearch",
    "Motion",
    "MotionError",
    "MotionLimitError",
    "Playback",
    "QuinticMove",
    "Row",
    "RowChecker",
    "Sequence",
    "SpeedChange",
    "Standstill",
    "Trajectory",
    "TrajectoryFileError",
    "check_rows",
    "locate_zero",
    "plan_move",
    "plan_playback",
    "plan_speed",
    "read_trajectory",
    "stop_move",
    "write_trajectory",
]
