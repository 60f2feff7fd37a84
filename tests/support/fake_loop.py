"""A loop without robot: real spool, real stream, samples whose values are zeros.

fake_loop.py RUNTIME PLAN-AS-JSON; see `Plan`. Prints `ready` when the sockets are there, and the
number of samples at its end.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import zmq
from sessions import make_session

from daq.samples.batches import (
    KIND_BATCH,
    KIND_SESSION,
    SCHEMA,
    Event,
    Header,
    RecordingRequest,
    encode_header,
    encode_session,
    frame_record,
)
from daq.samples.columns import ColumnDecoder
from daq.samples.sample import SampleLayout
from daq.samples.spool import SpoolWriter
from daq.stream.gateway.publisher import Publisher
from daq.system.runtime_directory import runtime_directory
from firmware_protocol.codec import command_codec, reply_codec
from firmware_protocol.fields import Framing
from firmware_protocol.profiles import profile_named


class Plan(msgspec.Struct, kw_only=True):
    session: str = "s1"
    robot: str = "bench1"
    samples: int = 1_000_000
    speed: float = 1.0
    """Times real time; 0 for as fast as it can."""
    spool_batches: int = 3000
    recordings: tuple[tuple[int, int | None], ...] = ((0, 1),)
    """From which sample on which recording is on."""
    name: str = "run"
    count: int = 20
    is_published: bool = True


class Samples:
    """Makes batches."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.session = make_session(plan.robot, session=plan.session, start_t_ns=0)
        decoder = ColumnDecoder(self.session)
        self.layout: SampleLayout = decoder.layout
        joints = len(decoder.robot.joints)
        parts = [self.layout.pack_joints([0.0] * joints, [0] * joints, [False] * joints)]
        for board in self.session.boards:
            profile = profile_named(board.profile)
            command, reply = (codec(profile, Framing.SPI) for codec in (command_codec, reply_codec))
            parts += [b"\0", command.encode(command.make()), reply.encode(reply.make())]
        self._rest = b"".join(parts)

    def request(self, seq: int) -> RecordingRequest | None:
        first, number = max(entry for entry in self.plan.recordings if entry[0] <= seq)
        if number is None:
            return None
        return RecordingRequest(number=number, name=self.plan.name, first_seq=first)

    def batches(self) -> Iterator[tuple[bytes, bytes]]:
        plan = self.plan
        for seq in range(0, plan.samples, plan.count):
            count = min(plan.count, plan.samples - seq)
            t_ns = (seq + count) * 1_000_000
            header = Header(
                schema=SCHEMA,
                session=plan.session,
                fingerprint=self.session.fingerprint,
                seq=seq,
                count=count,
                t_ns=t_ns,
                utc_ns=self.session.start_utc_ns + t_ns,
                recording=self.request(seq),
                events=(Event(seq=seq, t_ns=t_ns, kind="mark", text=f"at {seq}"),)
                if seq % 1000 == 0
                else (),
            )
            samples = [
                self.layout.pack_timing(n, n * 1_000_000, 10_000, 20_000, 30_000, 0, 0) + self._rest
                for n in range(seq, seq + count)
            ]
            yield encode_header(header), b"".join(samples)


def main() -> None:
    is_over = False

    def stop(_number: int, _frame: object) -> None:
        nonlocal is_over
        is_over = True

    signal.signal(signal.SIGTERM, stop)
    plan = msgspec.json.decode(sys.argv[2], type=Plan)
    runtime = runtime_directory(Path(sys.argv[1]), is_made=True)
    samples = Samples(plan)
    session_data = encode_session(samples.session)
    spool = SpoolWriter(
        runtime.spool(plan.session),
        frame_record(KIND_SESSION, session_data),
        payload_max=plan.count * samples.layout.size,
        batches=plan.spool_batches,
    )
    context = zmq.Context()
    publisher = Publisher(context, [runtime.stream])
    print("ready", flush=True)
    start_s = time.monotonic()
    done = 0
    for number, (header, payload) in enumerate(samples.batches()):
        if is_over:
            break
        spool.write(frame_record(KIND_BATCH, header, payload))
        if plan.is_published:
            publisher.publish(header, payload)
            if number % 50 == 0:
                publisher.publish_session(session_data)
        done += plan.count
        if plan.speed:
            wait_s = start_s + done * 1e-3 / plan.speed - time.monotonic()
            if wait_s > 0:
                time.sleep(wait_s)
    spool.close(unlink=False)
    context.destroy(linger=200)
    print(min(done, plan.samples), flush=True)


if __name__ == "__main__":
    main()
