"""Log lines on stderr as people read them, or as systemd's journal does: with their priority."""

from __future__ import annotations

import logging
import os
import sys


def log_to_stderr(name: str) -> None:
    """Have the lines of a package's loggers written; for programs, once."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(is_for_journal="JOURNAL_STREAM" in os.environ))
    logger = logging.getLogger(name)
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)


class LineFormatter(logging.Formatter):
    """Plain lines; for the system's journal with their priority in front."""

    _PRIORITIES = ((logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))

    def __init__(self, *, is_for_journal: bool) -> None:
        super().__init__()
        self._is_for_journal = is_for_journal

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        text = record.getMessage()
        if not self._is_for_journal:
            return f"armature: {text}"
        priority = next((p for level, p in self._PRIORITIES if record.levelno >= level), 7)
        return f"<{priority}>{text}"
