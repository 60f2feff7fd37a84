"""What the mock's physics really did, every 250 µs: motion is judged by it, not by replies."""

from __future__ import annotations

import numpy as np
from loop_rig import Rig

from daq.loop.setup import PERIOD_NS
from daq.recording.states import State
from hw_mocks.mock_robot import STEP_NS

STEP_S = STEP_NS * 1e-9
STEPS_PER_CYCLE = PERIOD_NS // STEP_NS


class TrueMotion:
    """Logs joints of a rig's plant from now on; arrays are (steps, joints), joint side, SI."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._positions: list[list[float]] = []
        self._currents: list[tuple[float, ...]] = []
        self._states: list[State] = []
        inner, plant, outputs = rig.mock.step, rig.mock.plant, rig.outputs

        def step() -> None:
            inner()
            self._positions.append(plant.joint_position_rad)
            self._currents.append(tuple(output.iq_a for output in outputs))
            self._states.append(rig.state)

        rig.mock.step = step  # type: ignore[method-assign]

    @property
    def now(self) -> int:
        """Number of the next step."""
        return len(self._positions)

    def position_rad(self, first: int = 0, last: int | None = None) -> np.ndarray:
        return np.array(self._positions[first:last])

    def current_a(self, first: int = 0, last: int | None = None) -> np.ndarray:
        return np.array(self._currents[first:last])

    def stop_sent(self) -> int:
        """Number of the step before which the first frame of a stop went out.

        It was decided a cycle earlier, by the reply to the frame before it.
        """
        return self._states.index(State.STOPPING)

    def stop_over(self) -> int:
        """Number of the step before which the boards were told to switch off, if they were."""
        left = self._states[::-1].index(State.STOPPING)
        return len(self._states) - left

    def velocity_rad_s(self, first: int = 0, last: int | None = None) -> np.ndarray:
        return np.diff(self.position_rad(first, last), axis=0) / STEP_S
