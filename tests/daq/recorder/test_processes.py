"""Real processes that are killed, frozen and restarted."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from acceptance import IS_LONG

from daq.recording import open_recording
from daq.samples.spool import SpoolReader

pytestmark = pytest.mark.system

PROJECT = Path(__file__).parents[3]
KILLS = 100 if IS_LONG else 3


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.fixture
def newest(place: Any) -> Callable[[], int]:
    """The newest sample that the loop has made."""

    def read() -> int:
        (path,) = place.runtime.spools
        with SpoolReader(path) as spool:
            numbers = [json.loads(record.header)["seq"] for record in spool.read_from(0)]
        return numbers[-1] if numbers else -1

    return read


@pytest.mark.acceptance
def test_killed_at_random_instants_the_recorder_loses_nothing(
    place: Any, start_loop: Any, start_recorder: Any, wait_until: Any, finish: Any
) -> None:
    chance = random.Random(3)
    # Recordings begin and end meanwhile, and are rotated.
    switches = [(0, 1), *((4000 * n, None if n % 3 == 2 else n + 1) for n in range(1, 400))]
    loop = start_loop(speed=4, recordings=switches, robot="laas4")
    for _ in range(KILLS):
        recorder = start_recorder("--rotate-s", "1.7")
        time.sleep(0.4 + chance.random() * 1.2)
        kill(recorder)
    recorder = start_recorder("--rotate-s", "1.7")
    time.sleep(1.0)
    loop.send_signal(signal.SIGTERM)
    out, _ = loop.communicate(timeout=20)
    made = int(out)
    wait_until(lambda: not place.runtime.spools)
    result = finish(recorder)

    assert not place.journals
    assert not [file for file in result["files"] if file["problem"]]
    starts = [first for first, _ in switches]
    numbers = np.arange(made)
    which = np.searchsorted(starts, numbers, side="right") - 1
    is_recorded = np.array([number is not None for _, number in switches])[which]
    assert not place.missing()
    found = place.samples()
    assert np.array_equal(found, numbers[is_recorded]), (len(found), is_recorded.sum())


def test_killed_together_they_lose_at_most_the_open_batch(
    *,
    place: Any,
    start_loop: Any,
    start_recorder: Any,
    wait_until: Any,
    finish: Any,
    newest: Any,
) -> None:
    loop, recorder = start_loop(speed=5), start_recorder()
    wait_until(lambda: newest() > 4000 and place.journals)
    kill(loop)
    kill(recorder)
    last = newest() + 19

    again = start_recorder()
    wait_until(lambda: not place.runtime.spools)
    finish(again)
    assert place.samples().tolist() == list(range(last + 1))
    assert not place.journals


def test_killed_together_and_the_spool_gone_they_lose_at_most_half_a_second(
    place: Any, start_loop: Any, start_recorder: Any, wait_until: Any, newest: Any
) -> None:
    """As if the computer had lost power; only what was synced counts, which is less than this."""
    loop, recorder = start_loop(), start_recorder()
    wait_until(lambda: newest() > 2000 and place.journals)
    kill(recorder)
    last = newest() + 19
    kill(loop)
    place.runtime.spools[0].unlink()
    (journal,) = place.journals
    with journal.open("ab") as file:
        file.write(b"ARMJ torn")

    done = recover(place)
    assert (done["journals"][0]["torn_bytes"], done["journals"][0]["missing"]) == (9, 0)
    found = place.samples()
    assert found.tolist() == list(range(len(found)))
    assert last - found[-1] <= 500


def recover(place: Any, *options: str) -> Any:
    command = [
        *(sys.executable, "-m", "tools.main", "recover", place.out),
        *("--runtime", place.runtime.path, "--json", *options),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=PROJECT, check=False)
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout)


def test_a_recovery_by_hand_leaves_the_living_alone(
    place: Any, start_loop: Any, start_recorder: Any, wait_until: Any, finish: Any
) -> None:
    loop, recorder = start_loop(speed=5), start_recorder()
    wait_until(lambda: place.journals)
    (held,) = recover(place)["journals"]
    assert held["code"] == "in-use" and not held["file"]
    kill(recorder)
    (left,) = recover(place)["journals"]
    assert left["code"] == "running" and place.journals
    kill(loop)
    (done,) = recover(place)["journals"]
    assert done["file"].endswith("run.h5") and not done["problem"] and done["samples"]
    assert not place.runtime.spools and not place.journals


@pytest.fixture
def freeze(
    *,
    place: Any,
    start_loop: Any,
    start_recorder: Any,
    wait_until: Any,
    finish: Any,
    newest: Any,
) -> Callable[..., tuple[int, Any]]:
    """Freezes a recorder for so many samples; what the loop made, and what the recorder printed."""

    def run(samples: int, **plan: Any) -> tuple[int, Any]:
        loop, recorder = start_loop(**plan), start_recorder()
        wait_until(lambda: place.journals)
        recorder.send_signal(signal.SIGSTOP)
        since = newest()
        wait_until(lambda: newest() > since + samples)
        recorder.send_signal(signal.SIGCONT)
        time.sleep(1.0)
        loop.send_signal(signal.SIGTERM)
        made = int(loop.communicate(timeout=20)[0])
        wait_until(lambda: not place.runtime.spools)
        return made, finish(recorder)

    return run


def test_frozen_for_longer_than_queues_hold_the_recorder_loses_nothing(
    place: Any, freeze: Any
) -> None:
    # 1000 batches, 20 000 samples, fill the publisher's queue.
    made, _ = freeze(30_000, speed=10, spool_batches=6000)
    assert place.samples().tolist() == list(range(made))
    assert not place.missing()


def test_frozen_for_longer_than_the_spool_the_gaps_are_the_loss(place: Any, freeze: Any) -> None:
    # More than sockets, queues and spool hold.
    made, result = freeze(80_000, speed=60, spool_batches=200)
    found, missing = place.samples().tolist(), place.missing()
    assert len(missing) > 10_000
    assert sorted([*found, *missing]) == list(range(made))
    assert sum(file["missing"] for file in result["files"]) == len(missing)


def test_once_ends_after_the_first_recording(
    place: Any, start_loop: Any, start_recorder: Any
) -> None:
    start_loop(speed=5, recordings=[(0, 1), (2000, None), (2500, 2)])
    recorder = start_recorder("--once", "--file", str(place.out / "first.h5"))
    out, err = recorder.communicate(timeout=60)
    assert recorder.returncode == 0, err
    (file,) = json.loads(out)["files"]
    assert (Path(file["file"]).name, file["samples"], file["gaps"]) == ("first.h5", 2000, [])
    with open_recording(place.out / "first.h5") as recording:
        assert recording["seq"][:].tolist() == list(range(2000))


def test_ended_and_started_again_the_recorder_loses_nothing(
    place: Any, start_loop: Any, start_recorder: Any, wait_until: Any, finish: Any
) -> None:
    loop = start_loop(speed=5)
    recorder = start_recorder()
    wait_until(lambda: place.journals)
    time.sleep(0.5)
    (file,) = finish(recorder)["files"]
    assert file["samples"] and not file["gaps"]
    recorder = start_recorder()
    loop.send_signal(signal.SIGTERM)
    made = int(loop.communicate(timeout=20)[0])
    wait_until(lambda: not place.runtime.spools)
    finish(recorder)
    assert [path.name for path in place.recordings] == ["run.h5", "run_2.h5"]
    assert place.samples().tolist() == list(range(made))


def test_one_recorder_per_robot(
    place: Any, start_recorder: Any, wait_until: Any, finish: Any
) -> None:
    first = start_recorder()
    wait_until((place.runtime.path / "recorder.lock").exists)
    time.sleep(0.2)
    second = start_recorder()
    _, err = second.communicate(timeout=60)
    assert second.returncode == 2
    assert str(place.runtime.path) in err and str(first.pid) in err
    assert finish(first) == {"files": [], "problem": ""}
