"""One chore in a cycle, each where the table says."""

from __future__ import annotations

from loop_rig import Rig

from daq.loop.schedule import Chore, Schedule
from daq.samples.batches import SAMPLES_PER_BATCH


def test_no_cycle_has_two_chores() -> None:
    phases = [phase for chore in Chore for phase in chore.value]
    assert len(set(phases)) == len(phases)
    assert set(phases) <= set(range(1, SAMPLES_PER_BATCH + 1))


def test_each_is_done_in_its_cycles_and_in_no_other() -> None:
    for chore in Chore:
        schedule, done = Schedule(), []
        schedule[chore] = lambda done=done: done.append(None)
        for phase in range(1, SAMPLES_PER_BATCH + 1):
            before = len(done)
            do = schedule.at[phase]
            if do is not None:
                do()
            assert len(done) - before == (phase in chore.value)


def test_the_loop_keeps_it() -> None:
    rig = Rig()
    done: list[int] = []
    rig.cycle.schedule[Chore.PLOT] = lambda: done.append(rig.now + 1)
    rig.step(2 * SAMPLES_PER_BATCH)
    first = list(Chore.PLOT.value)
    assert done == [*first, *(phase + SAMPLES_PER_BATCH for phase in first)]
