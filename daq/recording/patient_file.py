"""The file that HDF5 writes into, made so that a full disk cannot crash HDF5."""

from __future__ import annotations

import os
from pathlib import Path


class PatientFile:
    """A file to which writing never fails, as HDF5 sees it: a full disk would crash HDF5 itself.

    One that is there is emptied. The first failure is kept for `check`. What is written after it
    stays in memory, so that HDF5 can read it back and be closed; the file is of no use then.

    Raises:
        OSError: It cannot be made.
    """

    def __init__(self, path: Path) -> None:
        # Where others may write, a link would have us empty what it points to.
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(path, flags, 0o666)
        self._position = self._end = 0
        self._failure: BaseException | None = None
        self._unwritten: list[tuple[int, bytes]] = []

    def check(self) -> None:
        """Raise the failure, if there was one.

        Raises:
            OSError: What was written is not in the file.
        """
        if self._failure is not None:
            raise self._failure

    def sync(self) -> None:
        """Wait until all is on the disk.

        Raises:
            OSError: It is not.
        """
        self.check()
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Give the file back; to be called after HDF5 has closed it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    # --- what HDF5 calls --------------------------------------------------------------------------

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a place."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._end}[whence]
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        """Return the place."""
        return self._position

    def read(self, size: int) -> bytes:
        """Return bytes from here on."""
        data = bytearray(size)
        return bytes(data[: self.readinto(data)])

    def readinto(self, buffer: bytearray | memoryview) -> int:
        """Read bytes from here on into a buffer; zeros where nothing was written."""
        start, view = self._position, memoryview(buffer).cast("B")
        found = os.pread(self._descriptor, len(view), start)
        view[:] = found.ljust(len(view), b"\0")
        for offset, data in self._unwritten:
            first, last = max(offset, start), min(offset + len(data), start + len(view))
            if first < last:
                view[first - start : last - start] = data[first - offset : last - offset]
        self._position += len(view)
        return len(view)

    def write(self, data: bytes | memoryview) -> int:
        """Write bytes here."""
        view = memoryview(data).cast("B")
        try:
            self.check()
            done = 0
            while done < len(view):
                done += os.pwrite(self._descriptor, view[done:], self._position + done)
        except BaseException as error:  # Ctrl-C too: HDF5 must not see it
            self._failure = error
            self._unwritten.append((self._position, bytes(view)))
        self._position += len(view)
        self._end = max(self._end, self._position)
        return len(view)

    def truncate(self, size: int) -> int:
        """Set the length."""
        try:
            os.ftruncate(self._descriptor, size)
        except OSError as error:
            self._failure = self._failure or error
        self._end = size
        return size

    def flush(self) -> None:
        """Do nothing: nothing waits here."""
