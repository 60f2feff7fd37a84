"""Uploaded rows, played."""

from __future__ import annotations

import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from daq.motion.errors import MotionError
from daq.motion.playback import Playback


@given(
    joints=st.integers(1, 5),
    has_torque=st.booleans(),
    sizes=st.lists(st.integers(1, 7), min_size=1, max_size=6),
    order=st.randoms(use_true_random=False),
)
def test_every_row_comes_back(
    joints: int, has_torque: bool, sizes: list[int], order: st.DataObject
) -> None:
    width = joints * (3 if has_torque else 2)
    rows = np.random.default_rng(0).normal(size=(sum(sizes), width))
    edges = np.cumsum([0, *sizes])
    chunks = [rows[a:b].astype("<f8").tobytes() for a, b in itertools.pairwise(edges)]
    playback = Playback(joints, has_torque=has_torque)
    for chunk in chunks:
        playback.append(chunk)
    assert playback.rows == sum(sizes)
    assert playback.cycles == sum(sizes) - 1
    none = [] if has_torque else [0.0] * joints
    assert list(playback.end_row) == [*rows[-1], *none]
    cycles = list(range(playback.cycles))
    order.shuffle(cycles)  # type: ignore[attr-defined]
    for k in cycles:
        assert list(playback.row(k)) == [*rows[k], *none]
    last = rows[-1].copy()
    last[joints : 2 * joints] = 0.0
    for k in (playback.cycles, playback.cycles + 1, playback.cycles + 1000):
        assert list(playback.row(k)) == [*last, *none]
    if playback.cycles:
        assert list(playback.row(0)) == [*rows[0], *none]


def test_rows_may_follow_later() -> None:
    playback = Playback(1, has_torque=False)
    assert playback.rows == 0
    playback.append(np.array([[1.0, 0.5], [2.0, 0.5]]).tobytes())
    assert playback.row(0) == (1.0, 0.5, 0.0)
    assert playback.row(1) == (2.0, 0.0, 0.0)
    playback.append(np.array([[3.0, 0.5]]).tobytes())
    assert playback.row(1) == (2.0, 0.5, 0.0)
    assert playback.row(2) == (3.0, 0.0, 0.0)


@pytest.mark.parametrize("size", [0, 15, 17])
def test_part_of_a_row_is_refused(size: int) -> None:
    playback = Playback(1, has_torque=False)
    with pytest.raises(MotionError) as caught:
        playback.append(bytes(size))
    assert caught.value.code == "broken-rows"
    assert f"{size} bytes" in str(caught.value) and "16 bytes" in str(caught.value)
