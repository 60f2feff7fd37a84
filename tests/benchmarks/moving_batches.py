"""Any amount of batches as a loop makes them: some seconds of moving joints, again and again."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from daq.links.address import LinkAddress, LinkKind
from daq.loop.agenda import Agenda
from daq.loop.runner import Runner
from daq.loop.schedule import Chore
from daq.loop.setup import PERIOD_NS, make_loop, make_session
from daq.robot.load import load_robot, robot_text
from daq.samples.batches import (
    SAMPLES_PER_BATCH,
    Header,
    RecordingRequest,
    decode_header,
    encode_header,
    encode_session,
)
from firmware_protocol.profiles import PROFILES
from tools.running.boards import open_boards

Samples = np.ndarray[Any, np.dtype[Any]]
ROBOT = "laas4"
_CALIBRATION_S = 4.0
_MEDIANS_NS = {"wake_ns": 20_000, "transfer_ns": 80_000, "work_ns": 25_000}
_SPREAD = 0.3


class Stream(NamedTuple):
    """What a loop publishes.

    Attributes:
        session: The bytes of its session.
        batches: Header and payload of each; the last one ends the recording.
        recorded: Samples that belong to the recording.
    """

    session: bytes
    batches: list[tuple[bytes, bytes]]
    recorded: int


def moving_stream(*, made_s: float, duration_s: float) -> Stream:
    """A stream of the laas4 mock.

    Args:
        made_s: How much is simulated: the arm looks for its zeros, after the calibration.
        duration_s: How long the stream is, by repetition, in whole repetitions.
    """
    session, header, samples = _simulate(made_s)
    # Virtual timings are all alike and would take no room: real ones are noise.
    noise = np.random.default_rng(0)
    for name, median_ns in _MEDIANS_NS.items():
        samples[name] = median_ns * noise.lognormal(0.0, _SPREAD, len(samples))
    recording = RecordingRequest(number=1, name="", first_seq=0)
    header = replace(header, count=SAMPLES_PER_BATCH, recording=recording, events=())
    batches: list[tuple[bytes, bytes]] = []
    count = len(samples)
    repeats = max(1, round(duration_s * 1e9 / PERIOD_NS / count))
    for repeat in range(repeats):
        samples["seq"] = np.arange(repeat * count, (repeat + 1) * count)
        samples["t_ns"] = samples["seq"].astype("i8") * PERIOD_NS
        for first in range(0, count, SAMPLES_PER_BATCH):
            part = samples[first : first + SAMPLES_PER_BATCH]
            closed_ns = int(part["t_ns"][-1])
            header = replace(header, seq=int(part["seq"][0]), t_ns=closed_ns, utc_ns=closed_ns)
            batches.append((encode_header(header), part.tobytes()))
    after = replace(header, seq=repeats * count, recording=None)
    batches.append((encode_header(after), batches[-1][1]))
    return Stream(session, batches, repeats * count)


def _simulate(made_s: float) -> tuple[bytes, Header, Samples]:
    """The bytes of a session, one of its headers, and its samples in whole batches."""
    robot = load_robot(ROBOT, profiles=PROFILES)
    made: list[tuple[bytes, bytes]] = []
    with open_boards(robot, LinkAddress(LinkKind.MOCK)) as opened:
        session = make_session(
            robot_text(ROBOT),
            ROBOT,
            opened.boards,
            link="mock",
            version="benchmark",
            start_t_ns=opened.now_ns(),
            start_utc_ns=opened.utc_ns(),
            is_virtual=True,
        )
        loop = make_loop(
            robot,
            opened.boards,
            session,
            [lambda header, payload: made.append((header, payload))],
            now_ns=opened.now_ns,
            utc_ns=opened.utc_ns,
        )
        agenda = Agenda(loop)
        agenda.enable()
        agenda.hold()
        agenda.home()
        loop.cycle.schedule[Chore.AGENDA] = agenda.step
        duration_ns = round((_CALIBRATION_S + made_s) * 1e9)
        Runner(loop.cycle, opened, period_ns=PERIOD_NS, duration_ns=duration_ns).run()
    assert not agenda.problem, agenda.problem
    per_batch_ns = SAMPLES_PER_BATCH * PERIOD_NS
    first, last = (round(t_s * 1e9 / per_batch_ns) for t_s in (_CALIBRATION_S, duration_ns * 1e-9))
    kept = made[first:last]
    samples = loop.cycle.layout.view(b"".join(payload for _, payload in kept)).copy()
    return encode_session(session), decode_header(kept[0][0]), samples
