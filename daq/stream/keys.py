"""CURVE keys in files, which decide who may talk to a robot over a network.

A directory holds the key pair of one party, and under `allowed` the public keys of those it
trusts: for a robot the clients that may command it, for a client its one robot. Files are small
TOML texts. The secret key has mode 0600 and is refused when others could read it; nothing is ever
overwritten. Keys are Z85 text, as ZeroMQ writes them.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import zmq

from daq.errors import ConfigError

_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}\Z")
_KEY = re.compile(r"[0-9A-Za-z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}\Z")
_ALLOWED = "allowed"


@dataclass(frozen=True, slots=True)
class Keys:
    """A party's key pair and whom it trusts.

    Attributes:
        name: For messages.
        public_key: Z85 text.
        secret_key: Likewise. Not shown by `repr`.
        allowed: Public keys of the trusted, by name.
        directory: Where they came from, for messages.
    """

    name: str
    public_key: bytes
    secret_key: bytes = field(repr=False)
    allowed: Mapping[str, bytes]
    directory: Path

    @property
    def robot_key(self) -> bytes:
        """The public key of the one robot that a client trusts.

        Raises:
            ConfigError: There is none, or more than one.
        """
        if len(self.allowed) != 1:
            problem = (
                f"{len(self.allowed)} robots' public keys in {_ALLOWED}/, a client needs exactly "
                f"one: armature keys allow {self.directory} ROBOT.pub"
            )
            raise ConfigError(f"keys in {self.directory}", [problem])
        return next(iter(self.allowed.values()))


def make_keys(directory: Path, name: str) -> Keys:
    """Make a key pair: `NAME.key` (secret) and `NAME.pub`.

    Raises:
        ConfigError: The directory has a key pair already, or the name cannot be used.
    """
    if not _NAME.match(name):
        problem = f"name {name!r}: letters, digits, - and _ only, at most 40"
        raise ConfigError(f"keys in {directory}", [problem])
    directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    if existing := sorted(directory.glob("*.key")):
        problem = f"{existing[0].name} is there already, and a directory holds one key pair"
        raise ConfigError(f"keys in {directory}", [problem])
    public, secret = zmq.curve_keypair()
    secret_text = (
        "# Secret key of armature: whoever has it is taken for its owner. Never copy it.\n"
        f"name = '{name}'\npublic_key = '{public.decode()}'\nsecret_key = '{secret.decode()}'\n"
    )
    _write_new(directory / f"{name}.key", secret_text, 0o600)
    _write_public(directory / f"{name}.pub", name, public)
    return Keys(name, public, secret, {}, directory)


def allow_key(directory: Path, public_file: Path) -> str:
    """Trust another party; returns its name. A running loop learns of it when it starts again.

    Raises:
        ConfigError: The directory has no key pair, the file is not a public key, or a party of this
            name or with this key is there already.
    """
    keys = load_keys(directory)
    name, public = _read_public(public_file)
    if name in keys.allowed or public in keys.allowed.values():
        problem = f"{name} is allowed already; remove its file in {_ALLOWED}/ to replace it"
        raise ConfigError(f"keys in {directory}", [problem])
    (directory / _ALLOWED).mkdir(mode=0o755, exist_ok=True)
    _write_public(directory / _ALLOWED / f"{name}.pub", name, public)
    return name


def load_keys(directory: Path | str) -> Keys:
    """Read the keys of a directory.

    Raises:
        ConfigError: There is no key pair, or a file cannot be used; lists every problem.
    """
    directory = Path(directory)
    source = f"keys in {directory}"
    files = sorted(directory.glob("*.key"))
    if len(files) != 1:
        problem = f"{len(files)} .key files, one is needed: armature keys new {directory} NAME"
        raise ConfigError(source, [problem])
    problems: list[str] = []
    allowed: dict[str, bytes] = {}
    for path in sorted((directory / _ALLOWED).glob("*.pub")):
        try:
            name, public = _read_public(path)
        except ConfigError as error:
            problems += [f"{path.name}: {problem}" for problem in error.problems]
            continue
        if name in allowed:
            problems.append(f"{path.name}: a second key of {name!r}")
        allowed[name] = public
    try:
        mode = stat.S_IMODE(files[0].stat().st_mode)
        if mode & 0o077:
            problems.append(f"mode {mode:o} lets others use the secret key: chmod 600 {files[0]}")
        texts = _read_texts(files[0], ("name", "public_key", "secret_key"))
    except ConfigError as error:
        problems += [f"{files[0].name}: {problem}" for problem in error.problems]
    if problems:
        raise ConfigError(source, problems)
    public, secret = texts["public_key"].encode(), texts["secret_key"].encode()
    if zmq.curve_public(secret) != public:
        raise ConfigError(source, [f"{files[0].name}: public_key does not belong to secret_key"])
    return Keys(texts["name"], public, secret, allowed, directory)


def _read_public(path: Path) -> tuple[str, bytes]:
    texts = _read_texts(path, ("name", "public_key"))
    return texts["name"], texts["public_key"].encode()


def _read_texts(path: Path, wanted: tuple[str, ...]) -> dict[str, str]:
    """Return the texts of a key file, each checked by its pattern; exactly those wanted."""
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(str(path), [f"cannot be read: {error.strerror}"]) from error
    except ValueError as error:
        raise ConfigError(str(path), [f"is not a key file: {error}"]) from error
    problems = [f"{key}: unknown" for key in table if key not in wanted]
    for key in wanted:
        value = table.get(key)
        pattern, kind = (_NAME, "a name") if key == "name" else (_KEY, "a key of 40 characters")
        if not isinstance(value, str) or not pattern.match(value):
            problems.append(f"{key}: is missing or not {kind}")
    if "secret_key" in table and "secret_key" not in wanted:
        problems = ["holds a secret key: give away the .pub file, never the .key file"]
    if problems:
        raise ConfigError(str(path), problems)
    return {key: table[key] for key in wanted}


def _write_public(path: Path, name: str, public: bytes) -> None:
    text = (
        "# Public key of armature: may be given to anyone.\n"
        f"name = '{name}'\npublic_key = '{public.decode()}'\n"
    )
    _write_new(path, text, 0o644)


def _write_new(path: Path, text: str, mode: int) -> None:
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    except FileExistsError:
        raise ConfigError(str(path), ["is there already and is never overwritten"]) from None
    with open(file, "w", encoding="utf-8") as stream:
        os.fchmod(file, mode)  # whatever the umask
        stream.write(text)
        stream.flush()
        os.fsync(file)
