"""Recovery: recordings are made of the journals that a crash left behind.

A journal that nobody holds is completed from its session's spool, if that is still there, and
converted. One of a session that lives and has not come to its end is left to the recorder, which
continues it. The copy of a fault is converted as it is: it says nothing of what else was recorded.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from daq.errors import ConfigError, DaqError
from daq.recorder.contents import End, JournalBusyError, JournalError
from daq.recorder.conversion import Conversion, Progress, convert_journal
from daq.recorder.faults.folder import FaultFolder
from daq.recorder.journal import SUFFIX, Journal, end_of, part_of, session_of
from daq.recorder.spools import Spools
from daq.samples.batches import BatchError, decode_header
from firmware_protocol.errors import ProtocolError


def find_all(paths: Iterable[Path]) -> list[Path]:
    """Return the journals in directories, and those that are named.

    Raises:
        ConfigError: A path is not there, or cannot be looked at.
    """
    found: list[Path] = []
    problems: list[str] = []
    for path in paths:
        try:
            if path.is_dir():
                found += sorted(entry for entry in path.iterdir() if entry.name.endswith(SUFFIX))
            elif path.is_file():
                found.append(path)
            else:
                problems.append(f"{path}: no such file or directory")
        except OSError as error:
            problems.append(f"{path}: {error.strerror}")
    if problems:
        raise ConfigError("recover", problems)
    return found


def recover(path: Path, spools: Spools, *, progress: Progress | None = None) -> Conversion:
    """Make a recording of a journal; never raises for what is wrong with the file or the disk.

    `progress` is called with bytes read and bytes in all.
    """
    try:
        part = part_of(path)
        if part is not None and part.is_of_fault:
            result = convert_journal(path, progress=progress)
            FaultFolder(path.parent).keep_newest()
            return result
        session = session_of(path)
        fetched, is_running = _complete(path, spools, session)
        if is_running:
            note = f"session {session} is running: start `armature record`, which continues it"
            return Conversion(journal=str(path), note=note, code="running")
        spool = spools.open(session) if session else None
        data = b"" if spool is None else spool.session_data
        if spool is not None:
            spool.close()
        result = convert_journal(path, session_data=data, progress=progress)
        spools.remove_if_recorded(session)
        return replace(result, fetched=fetched)
    except JournalBusyError as error:
        return Conversion(journal=str(path), note=str(error), code=error.code)
    except FileNotFoundError:
        note = "somebody else has just converted it"
        return Conversion(journal=str(path), note=note, code="gone")
    except (DaqError, ProtocolError, OSError) as error:
        return _failed(path, error)


def _failed(path: Path, error: DaqError | ProtocolError | OSError) -> Conversion:
    problem, code = f"{path}: {error}", ""
    if isinstance(error, DaqError):
        problem, code = str(error) if isinstance(error, OSError) else problem, error.code
    elif isinstance(error, OSError):
        problem, code = f"{path}: {error.strerror}", "unreadable"
    return Conversion(journal=str(path), problem=problem, code=code)


def _complete(path: Path, spools: Spools, session: str) -> tuple[int, bool]:
    """Add what the spool still has; return how many samples, and whether the recording goes on."""
    spool = spools.open(session) if session else None
    if spool is None:
        return 0, False
    with spool:
        if (end := end_of(path)) is not None:
            # Its recorder may have been killed before it noted that.
            if end.next_seq > spools.recorded_until(session) and not spool.is_live():
                spools.mark_recorded(session, end.next_seq)
            return 0, False
        try:
            journal = Journal.open(path)
        except JournalBusyError:
            raise
        except JournalError:
            # It does not say what it is of; what is in it can be converted all the same.
            return 0, False
        try:
            if spool.is_live():
                return 0, True
            before = journal.written.samples
            for record in spool.read_from(journal.next_seq):
                try:
                    header = decode_header(record.header)
                except BatchError:
                    continue
                if header.seq + header.count <= journal.next_seq:
                    continue
                if header.recording is None or header.recording.number != journal.part.number:
                    break
                journal.append(header, record.header, record.payload)
            journal.finish(End(next_seq=journal.next_seq))
            spools.mark_recorded(session, max(journal.next_seq, spools.recorded_until(session)))
            return journal.written.samples - before, False
        finally:
            journal.close()
