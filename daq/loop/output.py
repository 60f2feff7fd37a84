"""Collects samples into batches and hands them to spool, stream and recorder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from daq.loop.events import Events
from daq.samples.batches import (
    SAMPLES_PER_BATCH,
    SCHEMA,
    Event,
    FaultNote,
    Header,
    RecordingRequest,
    Session,
    encode_header,
)

Sink = Callable[[bytes, bytes], None]
"""Takes header and payload of a batch; must neither block nor raise."""


class Output:
    """Collects samples and closes a batch every 20.

    Attributes:
        recording: What the recorder should be recording.
        add: Takes a sample; whoever adds the 20th closes the batch.
        listener: Gets the events of each batch, for a log; must neither block nor raise.
        note_fault: Asked as each batch is closed, with the number of its first sample and of the
            one behind its last: which fault is to be saved? Must neither block nor raise.
    """

    def __init__(
        self,
        session: Session,
        events: Events,
        sinks: Sequence[Sink],
        *,
        utc_ns: Callable[[], int],
        listener: Callable[[tuple[Event, ...]], None] | None = None,
    ) -> None:
        self._session = session
        self._events = events
        self._sinks = tuple(sinks)
        self._utc_ns = utc_ns
        self._samples: list[bytes] = []
        self.add = self._samples.append
        self._first_seq = 0
        self.listener = listener
        self.note_fault: Callable[[int, int], FaultNote | None] = lambda _first_seq, _end_seq: None
        self.recording: RecordingRequest | None = None
        self._next_recording: RecordingRequest | None = None
        self._recordings = 0
        self._is_ending = False
        self._due: list[Callable[[], None]] = []

    # --- recordings begin and end with a batch ----------------------------------------------------

    def start_recording(self, name: str) -> RecordingRequest:
        """Begin a recording with the next batch, and return what will be recorded."""
        self._recordings += 1
        # What is being collected belongs to no recording, or to the one before.
        first_seq = self._first_seq + (SAMPLES_PER_BATCH if self._samples else 0)
        request = RecordingRequest(number=self._recordings, name=name, first_seq=first_seq)
        if self._samples:
            self._next_recording = request
        else:
            self.recording, self._is_ending = request, False
        return request

    def stop_recording(self) -> None:
        """End the recording with the batch that is being collected."""
        self._next_recording = None
        self._is_ending = True

    @property
    def is_recording(self) -> bool:
        """Whether something is being recorded, or is about to be."""
        is_on = self.recording is not None and not self._is_ending
        return is_on or self._next_recording is not None

    @property
    def recording_name(self) -> str:
        """Name of the recording being made; empty for none."""
        request = self._next_recording or (None if self._is_ending else self.recording)
        return "" if request is None else request.name or f"recording {request.number}"

    # --- samples ----------------------------------------------------------------------------------

    def close_batch(self, t_ns: int) -> None:
        """Close a batch with what was collected, however much it is.

        The spool gets it at once, the others with `hand_on`: that is for the next cycle, so that
        not all of it is done in one.
        """
        self.hand_on()
        if not self._samples:
            self._tell(self._events.take())
            return
        payload = b"".join(self._samples)
        count = len(self._samples)
        self._samples.clear()
        fault = self.note_fault(self._first_seq, self._first_seq + count)
        events = self._events.take()
        header = encode_header(
            Header(
                schema=SCHEMA,
                session=self._session.session,
                fingerprint=self._session.fingerprint,
                seq=self._first_seq,
                count=count,
                t_ns=t_ns,
                utc_ns=self._utc_ns(),
                recording=self.recording,
                events=events,
                fault=fault,
            )
        )
        self._first_seq += count
        if self._is_ending:
            self.recording, self._is_ending = None, False
        if self._next_recording is not None:
            self.recording, self._next_recording = self._next_recording, None
        for sink in self._sinks[:1]:
            sink(header, payload)
        self._due = [partial(sink, header, payload) for sink in self._sinks[1:]]
        self._due.append(partial(self._tell, events))

    def hand_on(self) -> None:
        """Hand the last batch to all other sinks."""
        due, self._due = self._due, []
        for action in due:
            action()

    def _tell(self, events: tuple[Event, ...]) -> None:
        if events and self.listener is not None:
            self.listener(events)
