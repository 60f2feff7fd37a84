"""Writes events as lines of a log, in a process of its own.

Writing a line may block for as long as it likes (a full pipe, a slow terminal), and the loop has no
such time. So events go into a pipe without waiting, and a small child process (this module, run as
a program) writes them to stderr: repetitions within 10 s are counted instead of shown, and under
systemd each line carries its priority. Whoever starts the loop can have the events themselves.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator

import msgspec

from daq.samples.batches import Event
from daq.system.signals import ignore_safe_stops

QUIET_S = 10.0
_PRIORITY = {"error": 3, "warning": 4, "info": 6}


class EventWriter:
    """The loop's end of a pipe: one JSON object a line.

    Attributes:
        dropped: Batches of events that did not fit into the pipe.
    """

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._encode = msgspec.json.Encoder().encode
        self.dropped = 0

    def __call__(self, events: tuple[Event, ...]) -> None:
        """Write events; never waits."""
        lines = b"".join(self._encode(event) + b"\n" for event in events)
        try:
            os.write(self._descriptor, lines)
        except OSError:  # full, or nobody reads it: the events are in the recording anyway
            self.dropped += 1

    def close(self) -> None:
        """Give the pipe back."""
        os.close(self._descriptor)


class EventLog(EventWriter):
    """The log, and the process that writes it."""

    def __init__(self) -> None:
        read_end, write_end = os.pipe()
        command = [sys.executable, "-P", "-m", "daq.loop.process.event_log"]
        # A session of its own: Ctrl-C is for the loop, whose last words still have to be written.
        self._process = subprocess.Popen(
            command,
            stdin=read_end,
            # Not the loop's: its reader waits until everybody has closed it.
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(read_end)
        super().__init__(write_end)

    def close(self, timeout_s: float = 2.0) -> None:
        """Let everything be written."""
        super().close()
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Digest:
    """Turns events into lines, without repetition.

    Args:
        has_priorities: Whether each line begins with its priority, as systemd's journal reads it.
    """

    def __init__(self, *, has_priorities: bool) -> None:
        self._has_priorities = has_priorities
        self._seen: dict[tuple[str, str], tuple[float, int, Event]] = {}

    def add(self, event: Event, now_s: float) -> Iterator[str]:
        """Yield the lines for an event: none for a repetition within 10 s or one of no interest."""
        if event.severity == "debug":
            return
        if event.severity == "info" or event.kind in ("state", "mark"):
            yield self._line(event, event.text)
            return
        key = event.kind, event.source
        first_s, count, _ = self._seen.get(key, (-QUIET_S, 0, event))
        if now_s - first_s < QUIET_S:
            self._seen[key] = first_s, count + 1, event
            return
        yield from self._flush(key)
        self._seen[key] = now_s, 0, event
        yield self._line(event, event.text)

    def tick(self, now_s: float) -> Iterator[str]:
        """Yield the lines that are due: how often something was repeated."""
        for key, (first_s, _, _) in list(self._seen.items()):
            if now_s - first_s >= QUIET_S:
                yield from self._flush(key)

    def end(self) -> Iterator[str]:
        """Yield the lines that are left."""
        for key in list(self._seen):
            yield from self._flush(key)

    def _flush(self, key: tuple[str, str]) -> Iterator[str]:
        _, count, event = self._seen.pop(key, (0.0, 0, None))
        if count and event is not None:
            yield self._line(event, f"{event.text} (and {count} more of this kind)")

    def _line(self, event: Event, text: str) -> str:
        prefix = f"<{_PRIORITY.get(event.severity, 6)}>" if self._has_priorities else ""
        severity = "" if event.severity == "info" else f"{event.severity}: "
        return f"{prefix}armature: {severity}{text}"


def main() -> int:
    """Read events from stdin, write lines to stderr."""
    ignore_safe_stops()
    digest = Digest(has_priorities="JOURNAL_STREAM" in os.environ)
    decode = msgspec.json.Decoder(Event).decode
    pending = b""
    while True:
        ready, _, _ = select.select([0], [], [], 1.0)
        now_s = time.monotonic()
        data = os.read(0, 1 << 16) if ready else None
        if data == b"":
            _write(digest.end())
            return 0
        pending += data or b""
        *lines, pending = pending.split(b"\n")
        for line in lines:
            with contextlib.suppress(msgspec.MsgspecError):  # cut off by a pipe that was full
                _write(digest.add(decode(line), now_s))
        _write(digest.tick(now_s))


def _write(lines: Iterator[str]) -> None:
    for line in lines:
        os.write(2, line.encode(errors="replace") + b"\n")


if __name__ == "__main__":
    sys.exit(main())
