"""Words of systemd's unit files, quoted where needed and refused where quoting is not safe.

Pure text. What systemd would expand or cut (specifiers, variables, quotes) never gets through.
"""

from __future__ import annotations

import re
from pathlib import Path

from daq.errors import ConfigError

# They are read differently from setting to setting.
_UNSAFE = "\"'\\$"
_PLAIN = re.compile(r"[\w./:=@+,?&%~*-]+")


def word(text: str) -> str:
    """Return one word of a command line or list, as it is written in a unit file.

    Raises:
        ConfigError: It has characters that no unit file carries safely.
    """
    refused = [letter for letter in text if letter in _UNSAFE or not letter.isprintable()]
    if refused or not text:
        what = f"has the character {refused[0]!r}" if refused else "is empty"
        raise ConfigError(repr(text), [f"{what}, which a systemd unit cannot carry: rename it"])
    escaped = text.replace("%", "%%")
    return escaped if _PLAIN.fullmatch(text) else f'"{escaped}"'


def path_word(path: Path, *, is_optional: bool = False) -> str:
    """Return a path in a list of paths; an optional one need not exist for the service to start.

    Raises:
        ConfigError: It is relative, or has characters that no unit file carries safely.
    """
    if not path.is_absolute() or ":" in str(path):
        problem = "a systemd unit needs an absolute path without a colon"
        raise ConfigError(repr(str(path)), [problem])
    return word(f"-{path}" if is_optional else str(path))
