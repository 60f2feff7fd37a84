"""The recorder: follows the loop's batches, fetches what it missed, outlasts a bad disk.

Batches come from the stream or the spool; sequence numbers decide which are new. What neither has
any more is a gap, which shows by the numbers of what is there. The headers say what to record, and
which fault to save beside that. No ZeroMQ here, and no thread: `handle`, `handle_session` and
`tick` are called by a daemon, or in lockstep by a run in virtual time.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from daq.recorder.converters import Converter
from daq.recorder.disk import RESERVE_BYTES, Disk, explain
from daq.recorder.faults.folder import FOLDER, FaultFolder
from daq.recorder.faults.saving import FaultSaver
from daq.recorder.files import RecordingFiles
from daq.recorder.session_samples import sample_size
from daq.recorder.spools import Spools
from daq.samples.batches import BatchError, Header, Session, decode_header, decode_session
from daq.samples.spool import SpoolReader
from daq.stream.messages import RecorderReport

SYNC_AFTER_S = 0.4
"""With a tick every 50 ms, nothing waits longer than half a second."""
_LOOK_EVERY_S = 0.25
_RETRY_EVERY_S = 1.0
_REPORT_EVERY_S = 0.5
_STILL_AFTER_S = 0.3
"""Without a batch for so long, look into the spool: is the stream broken, or the loop gone?"""
_logger = logging.getLogger(__name__)


class _Trouble(NamedTuple):
    """Why and since when nothing can be written, and what was missing then."""

    problem: str
    since_s: float
    missing: int


class Recorder:
    """Recorder of what one loop after another publishes.

    Args:
        directory: Where recordings go, and in `faults` those of faults. It must be there, and is
            never made here.
        spools: Where to fetch what was missed.
        converter: Turns finished journals into HDF5.
        report: Gets a `RecorderReport` twice a second.
        file_name: Of the first recording; by default they are named by their request, or by robot
            and session.
        rotate_s: Begin a new file when one is that long; None for never.
        is_once: Whether the first recording is the only one.
        reserve_bytes: Stop writing when the disk has no more room than that.
        sync_after_s: The latest that a batch is made safe; None for at the end only.
        silence_s: Without a spool, a loop that was silent for so long is gone; None for never.
        since_utc_ns: Leave alone what sessions that began before this left in their spools.
        now_s: Monotonic clock.
    """

    def __init__(
        self,
        directory: Path,
        *,
        spools: Spools,
        converter: Converter,
        report: Callable[[RecorderReport], object] | None = None,
        file_name: str = "",
        rotate_s: float | None = None,
        is_once: bool = False,
        reserve_bytes: int = RESERVE_BYTES,
        sync_after_s: float | None = SYNC_AFTER_S,
        silence_s: float | None = 2.0,
        since_utc_ns: int = 0,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._since_utc_ns = since_utc_ns
        self._disk = Disk(directory, reserve_bytes=reserve_bytes)
        self._spools = spools
        self._converter = converter
        self._report = report
        self._sync_after_s = sync_after_s
        self._silence_s = silence_s
        self._now_s = now_s
        self.files = RecordingFiles(
            self._disk, spools, converter, file_name=file_name, rotate_s=rotate_s, is_once=is_once
        )
        folder = FaultFolder(directory / FOLDER, reserve_bytes=reserve_bytes)
        self._faults = FaultSaver(folder, spools, converter)
        self._session: Session | None = None
        self._sample_size: int | None = None
        self._spool: SpoolReader | None = None
        self._over: set[str] = set()
        self._next_seq = 0
        self._seen_end: dict[int, int] = {}
        self._trouble: _Trouble | None = None
        self._away = ""
        self._complaint = ""
        self._unsynced_s: float | None = None
        self._heard_s = self._look_s = self._retry_s = self._report_s = now_s()

    # --- what comes in ----------------------------------------------------------------------------

    def handle_session(self, data: bytes) -> None:
        """Take a session message."""
        try:
            session = decode_session(data)
        except BatchError as error:
            self._complain(error)
            return
        if self._follow_session(session.session, session, data):
            self._heard_s = self._now_s()

    def handle(self, header_data: bytes, payload: bytes) -> None:
        """Take a batch."""
        try:
            header = decode_header(header_data)
        except BatchError as error:
            self._complain(error)
            return
        if not self._follow_session(header.session) or not self._is_whole(header, payload):
            return
        self._heard_s = self._now_s()
        if header.recording is not None:
            self._seen_end[header.recording.number] = header.seq + header.count
        if header.seq > self._next_seq:
            self._catch_up(header.seq)
        self._take(header, header_data, payload)

    def tick(self) -> None:
        """Do what is due. To be called every 50 ms or so."""
        now_s = self._now_s()
        if self._is_sync_due(now_s):
            self._try(self._sync)
        if now_s >= self._look_s:
            self._look_s = now_s + _LOOK_EVERY_S
            if self._trouble is None:
                self._look_after_disk()
                self._look_for_more(now_s)
            elif now_s >= self._retry_s:
                self._retry()
            if self._spool is not None:
                self._faults.save_due(self._spool)
            self._converter.poll()
        if now_s >= self._report_s and self._report is not None:
            self._report_s = now_s + _REPORT_EVERY_S
            self._report(self.status())

    def finish(self) -> None:
        """Fetch what is left and end the recording; what cannot be written stays in the journal."""
        if self._trouble is not None:
            self._retry()
        if self._end_session():
            self.adopt()  # of a loop that ended before it was heard of, too
        else:
            if self._spool is not None:
                self._faults.save(self._spool)
            self.files.give_up()
        if self._report is not None:
            self._report(self.status())

    def adopt(self) -> None:
        """Record what the spools of dead sessions hold, and remove them."""
        for name in self._spools.dead():
            if self._session is not None:
                return  # the disk is full: its turn comes again
            if name in self._over or not self._is_of_our_time(name):
                continue
            if self._begin_session(name, None, b""):
                self.files.is_adopting = True
                self._end_session()

    def _is_of_our_time(self, name: str) -> bool:
        spool = self._spools.open(name)
        if spool is None:
            return False
        with spool:
            return spool.session.start_utc_ns >= self._since_utc_ns

    @property
    def is_loop_alive(self) -> bool:
        """Whether the loop that it follows is at work."""
        return self._spool is not None and self._spool.is_live()

    def status(self) -> RecorderReport:
        """Return how it is doing."""
        problem = self._trouble.problem if self._trouble else self._away
        return RecorderReport(
            state="waiting" if problem else "recording" if self.files.journal else "idle",
            file=str(self.files.targets[-1])[-2000:] if self.files.targets else "",
            session=self._session.session[:100] if self._session else "",
            next_seq=self._next_seq,
            written=self.files.written,
            missing=self.files.missing,
            pending=self._converter.pending,
            free_bytes=self._disk.free_bytes(),
            problem=problem[:1000],
            fault_file=str(self._faults.latest or "")[-2000:],
        )

    # --- sessions ---------------------------------------------------------------------------------

    def _follow_session(self, name: str, session: Session | None = None, data: bytes = b"") -> bool:
        """Follow a session; False while that is not possible."""
        if self._session is not None and self._session.session == name:
            return True
        if name in self._over:
            return False
        # The old one's last batches come first. While the disk is full each spool keeps its own.
        if not self._end_session():
            return False
        self.adopt()
        return self._session is None and self._begin_session(name, session, data)

    def _begin_session(self, name: str, session: Session | None, data: bytes) -> bool:
        spool = self._spools.open(name)
        if spool is not None:
            session, data = spool.session, spool.session_data
        if session is None or session.session != name:
            return False
        self._spool, self._session = spool, session
        self._sample_size = sample_size(session)
        self.files.is_adopting = False
        self._faults.enter()
        self._heard_s = self._now_s()
        self._seen_end = {}
        self._next_seq = self.files.enter(session, data)
        return True

    def _end_session(self) -> bool:
        """Record the rest of the session and leave it; False if the disk does not let us."""
        session, spool = self._session, self._spool
        if session is None:
            return True
        is_over = spool is not None and not spool.is_live()
        if self._trouble is not None or not self._catch_up():
            return False
        if not self._try(lambda: self.files.end(self._end_seq())):
            return False
        self._unsynced_s = None
        self.files.leave()
        self._spools.mark_recorded(session.session, self._next_seq)
        if spool is not None:
            self._faults.save(spool)
            spool.close()
        if is_over:
            self._over.add(session.session)
            self._spools.remove(session.session)
        self._session = self._spool = None
        return True

    def _look_for_more(self, now_s: float) -> None:
        """Take what the spool has when the stream is silent, and notice the end of the loop."""
        silent_s = now_s - self._heard_s
        if silent_s < _STILL_AFTER_S:
            return
        if self._session is None:
            self.adopt()
            return
        if self._spool is None:
            if self._silence_s is not None and silent_s >= self._silence_s:
                self._end_session()
        elif self._spool.is_live():
            self._catch_up()
        else:
            self._end_session()

    # --- batches ----------------------------------------------------------------------------------

    def _catch_up(self, until_seq: int = sys.maxsize) -> bool:
        """Take from the spool what was missed; False if that is not possible."""
        if self._spool is None:
            return True
        for record in self._spool.read_from(self._next_seq):
            try:
                header = decode_header(record.header)
            except BatchError as error:
                self._complain(error)
                continue
            if header.seq >= until_seq:
                break
            if not self._is_whole(header, record.payload):
                continue
            if not self._take(header, record.header, record.payload):
                return False
        return True

    def _is_whole(self, header: Header, payload: bytes) -> bool:
        """Whether a batch holds as many samples as it says."""
        size, rest = divmod(len(payload), header.count)
        # A session that is not understood here can still be kept, for a version that does.
        if size and not rest and self._sample_size in (size, None):
            return True
        expected = f"{self._sample_size or 'as many'} bytes each"
        self._complain(
            BatchError(
                f"{len(payload)} bytes for {header.count} samples, expected {expected}",
                code="wrong-size",
            )
        )
        return False

    def _take(self, header: Header, header_data: bytes, payload: bytes) -> bool:
        """Record a batch if it is new; False if that is not possible."""
        self._faults.take(header.fault)
        if self._trouble is not None:
            return False
        if header.seq + header.count <= self._next_seq:
            return True
        return self._try(lambda: self._record(header, header_data, payload))

    def _record(self, header: Header, header_data: bytes, payload: bytes) -> None:
        journal = self.files.follow(header, self._next_seq, self._end_seq())
        if journal is not None:
            journal.append(header, header_data, payload)
            if self._unsynced_s is None:
                self._unsynced_s = self._now_s()
            elif self._is_sync_due(self._now_s()):
                self._sync()
        self._next_seq = header.seq + header.count

    def _end_seq(self) -> int:
        """Return the sample behind the last one known to belong to the open recording."""
        journal = self.files.journal
        number = journal.part.number if journal else 0
        return max(self._next_seq, self._seen_end.get(number, 0))

    # --- the disk ---------------------------------------------------------------------------------

    def _is_sync_due(self, now_s: float) -> bool:
        return (
            self._unsynced_s is not None
            and self._sync_after_s is not None
            and now_s - self._unsynced_s >= self._sync_after_s
        )

    def _sync(self) -> None:
        if self.files.journal is not None:
            self.files.journal.sync()
        self._unsynced_s = None

    def _try(self, action: Callable[[], None]) -> bool:
        """Do something with the disk; False if that did not work, and we wait from now on."""
        try:
            action()
        except OSError as error:
            self._wait(error)
            return False
        return True

    def _wait(self, error: OSError) -> None:
        journal = self.files.journal
        if journal is not None:
            # What stands in the journal is kept if it can be, or else fetched again.
            with contextlib.suppress(OSError):
                journal.sync()
            self._next_seq = journal.next_seq
        self._unsynced_s = None
        now_s = self._now_s()
        self._retry_s = now_s + _RETRY_EVERY_S
        problem = explain(self._disk.directory, error)
        if self._trouble is None:
            _logger.error(
                "%s; the spool keeps what comes, the recording goes on by itself", problem
            )
            self._trouble = _Trouble(problem, now_s, self.files.missing)
        self._trouble = self._trouble._replace(problem=problem)

    def _retry(self) -> None:
        """See whether the disk can be written again, and go on."""
        try:
            self._disk.check()
            self.files.bring_back()
        except OSError as error:
            self._wait(error)
            return
        if self.files.journal is not None:
            self._next_seq = self.files.journal.next_seq
        trouble, self._trouble = self._trouble, None
        if trouble is None:
            return
        if not self._catch_up():  # so it was not over
            self._trouble = trouble
            return
        lasted_s, lost = self._now_s() - trouble.since_s, self.files.missing - trouble.missing
        _logger.warning(
            "%s: recording again after %.0f s, %d samples lost",
            self._disk.directory,
            lasted_s,
            max(lost, 0),
        )

    def _look_after_disk(self) -> None:
        """Notice a disk that fills up, and a journal that was removed."""
        if self.files.journal is None or not self._try(self._disk.check_reserve):
            return
        try:
            self.files.bring_back()
            self._next_seq = self.files.journal.next_seq
            self._away = ""
        except OSError as error:
            # We have it still open: writing goes on, and nothing is lost while we live.
            if not self._away:
                _logger.error(
                    "%s; what is recorded is kept open", explain(self._disk.directory, error)
                )
            self._away = explain(self._disk.directory, error)

    def _complain(self, error: BatchError) -> None:
        """Say what is wrong with the stream, once."""
        if self._complaint != str(error):
            self._complaint = str(error)
            _logger.error("the stream cannot be recorded: %s", error)
