"""Faults on the wire and in the boards: seeded, scriptable, logged.

A fault is written `KIND[:key=value,…]`: `flip:rate=0.01`, `stuck-low:at=2,for=0.5,board=1`. This
module reads such texts and decides, exchange by exchange, which faults strike; `faults.wire` and
`serial_port` make them happen, `clock` those of the computer itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from hw_mocks.errors import MockConfigError, suggest


class FaultKind(Enum):
    """What can go wrong."""

    FLIP = "flip"
    """One bit of the command or of the reply is inverted."""
    DROP = "drop"
    """The exchange never reaches the board; the line idles."""
    REPEAT = "repeat"
    """The host receives the previous reply once more."""
    TRUNCATE = "truncate"
    """The exchange ends early."""
    DELAY = "delay"
    """The board acts on two commands one exchange late (SPI); the reply comes late (serial)."""
    STUCK_LOW = "stuck-low"
    """Every byte to the host reads 0x00."""
    STUCK_HIGH = "stuck-high"
    """Every byte to the host reads 0xFF."""
    STALE_INDEX = "stale-index"
    """The board obeys, but echoes an old index."""
    BROWN_OUT = "brown-out"
    """The board loses its supply and reboots."""
    ENCODER_GAP = "encoder-gap"
    """The encoders' signals are gone: the board goes on with the last counts it read."""
    BOARD_ERROR = "board-error"
    """The board latches an error (`code=7`), of one motor (`motor=2`) or as a whole; code 0 is that
    of a gate driver which did not initialise."""
    VANISH = "vanish"
    """The device node disappears (ENODEV)."""
    IO_ERROR = "io-error"
    """Transfers fail with EIO."""
    UNPLUG = "unplug"
    """The serial port is pulled."""
    SKIP = "skip"
    """The computer is busy elsewhere: the loop sleeps through whole periods (virtual time only)."""


_SKIPPED_MAX = 1000
"""Periods in a row, whatever the rate."""
_SKIPS_STREAM = 1 << 16
"""Beyond the number of any board: what skips draw does not change what strikes the boards."""
_LASTING = {
    FaultKind.STUCK_LOW: 0.1,
    FaultKind.STUCK_HIGH: 0.1,
    FaultKind.STALE_INDEX: 0.1,
    FaultKind.BROWN_OUT: 0.05,
    FaultKind.ENCODER_GAP: 0.05,
    FaultKind.VANISH: math.inf,
    FaultKind.IO_ERROR: 0.1,
    FaultKind.UNPLUG: math.inf,
}
"""Faults that last, and for how many seconds unless `for` says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedFault:
    """One line of a fault script: at random, `rate` per exchange (`skip`: period), or once."""

    kind: FaultKind
    rate: float = 0.0
    at_s: float | None = None
    for_s: float = 0.0
    board: int | None = None
    """By its number in the robot file, from 0; None for all."""
    direction: str | None = None
    """For `flip`: "command", "reply", or None for either."""
    code: int = 7
    """For `board-error`."""
    motor: int | None = None
    """Likewise: 1 or 2; None for the whole board."""


class FaultEvent(NamedTuple):
    """A fault that struck, for the log and for tests that compare it with what the host counted.

    Attributes:
        board: By its number; -1 for the computer.
    """

    time_ns: int
    board: int
    exchange: int
    kind: FaultKind
    detail: str


class FaultScript:
    """Decides which fault strikes which exchange, and notes it in `events`.

    After each random fault of a board, `apart` exchanges stay free of them, so that its
    consequences can be distinguished from those of the next one. Time may count from the first
    exchange, for programs that take a while to start, or from the start of the simulation.
    """

    def __init__(
        self,
        faults: Sequence[ScriptedFault] = (),
        *,
        seed: int = 0,
        apart: int = 0,
        is_from_first_exchange: bool = False,
    ) -> None:
        self.events: list[FaultEvent] = []
        self._seed = seed
        self._generators: dict[int, np.random.Generator] = {}
        self._skips = [fault for fault in faults if fault.kind is FaultKind.SKIP]
        on_boards = [fault for fault in faults if fault.kind is not FaultKind.SKIP]
        self._random = [fault for fault in on_boards if fault.at_s is None]
        self._timed = [fault for fault in on_boards if fault.at_s is not None]
        self._skipped_once: set[int] = set()
        self._started: set[tuple[int, int]] = set()
        self._apart = apart
        self._free_from: dict[int, int] = {}
        self._exchanges: dict[int, int] = {}
        self._drawn: dict[int, ScriptedFault | None] = {}
        self._origin_ns = None if is_from_first_exchange else 0

    def strike(self, board: int, now_ns: int) -> ScriptedFault | None:
        """Return the random or one-off fault that hits this exchange of a board, if any."""
        if self._origin_ns is None:
            self._origin_ns = now_ns
        exchange = self._exchanges.get(board, -1) + 1
        self._exchanges[board] = exchange
        drawn = self._drawn.pop(board) if board in self._drawn else self._draw(board, exchange)
        for number, fault in enumerate(self._timed):
            if fault.kind not in _LASTING and self._is_due(number, fault, board, now_ns):
                return fault
        return drawn

    def spares_next(self, board: int, now_ns: int, until_ns: int) -> bool:
        """Whether the next exchange of a board will be free of faults if it begins in this time.

        Random faults are decided here and now; `strike` keeps to it.
        """
        if self._origin_ns is None or any(
            self._may_hold(number, fault, board, now_ns, until_ns)
            for number, fault in enumerate(self._timed)
        ):
            return False
        if board not in self._drawn:
            self._drawn[board] = self._draw(board, self._exchanges.get(board, -1) + 1)
        return self._drawn[board] is None

    def generator_of(self, board: int) -> np.random.Generator:
        """Return the source of all that is random on a board, independent of the other boards."""
        if board not in self._generators:
            self._generators[board] = np.random.default_rng([self._seed, board])
        return self._generators[board]

    def lasting(self, board: int, now_ns: int) -> list[ScriptedFault]:
        """Return the lasting faults that hold a board now.

        However short, each is seen once: it may have come and gone since the last exchange.
        """
        held: list[ScriptedFault] = []
        for number, fault in enumerate(self._timed):
            if fault.kind not in _LASTING or fault.at_s is None:
                continue
            if self._is_due(number, fault, board, now_ns):
                exchange = self._exchanges.get(board, -1) + 1
                detail = f"for {fault.for_s:g} s"
                self.events.append(FaultEvent(now_ns, board, exchange, fault.kind, detail))
                held.append(fault)
            elif (number, board) in self._started and self._is_on(fault.at_s, fault.for_s, now_ns):
                held.append(fault)
        return held

    def log(self, board: int, now_ns: int, fault: ScriptedFault, detail: str) -> None:
        """Note that a fault of `strike` struck."""
        exchange = self._exchanges.get(board, 0)
        self.events.append(FaultEvent(now_ns, board, exchange, fault.kind, detail))

    def oversleep_ns(self, now_ns: int, period_ns: int) -> int:
        """Return how much later than a deadline, which is now, a sleeper wakes up.

        That is some whole periods and, as the computer does not know them, a part of one.
        """
        skipped, generator = 0, self.generator_of(_SKIPS_STREAM)
        for number, fault in enumerate(self._skips):
            if fault.at_s is None:
                while skipped < _SKIPPED_MAX and generator.random() < fault.rate:
                    skipped += 1
            elif number not in self._skipped_once and self._elapsed_ns(now_ns) >= fault.at_s * 1e9:
                self._skipped_once.add(number)
                skipped += 1
        if not skipped:
            return 0
        self.events.append(FaultEvent(now_ns, -1, 0, FaultKind.SKIP, f"{skipped} periods"))
        return int((skipped + generator.random()) * period_ns)

    @property
    def has_skips(self) -> bool:
        """Whether the computer ever sleeps through a period."""
        return bool(self._skips)

    @property
    def is_empty(self) -> bool:
        """Whether nothing will ever happen to a board."""
        return not self._random and not self._timed

    def _draw(self, board: int, exchange: int) -> ScriptedFault | None:
        if exchange < self._free_from.get(board, 0):
            return None
        generator = self.generator_of(board)
        for fault in self._random:
            if fault.board in (None, board) and generator.random() < fault.rate:
                self._free_from[board] = exchange + 1 + self._apart
                return fault
        return None

    def _may_hold(
        self, number: int, fault: ScriptedFault, board: int, now_ns: int, until_ns: int
    ) -> bool:
        """Whether a timed fault holds a board now or may strike it until then."""
        if fault.board not in (None, board) or fault.at_s is None:
            return False
        if (number, board) in self._started:
            return self._is_on(fault.at_s, fault.for_s, now_ns)
        return self._elapsed_ns(until_ns) >= fault.at_s * 1e9

    def _elapsed_ns(self, now_ns: int) -> int:
        return 0 if self._origin_ns is None else now_ns - self._origin_ns

    def _is_on(self, at_s: float, for_s: float, now_ns: int) -> bool:
        return self._elapsed_ns(now_ns) - at_s * 1e9 < for_s * 1e9

    def _is_due(self, number: int, fault: ScriptedFault, board: int, now_ns: int) -> bool:
        elapsed_ns = self._elapsed_ns(now_ns)
        if fault.board not in (None, board) or fault.at_s is None or elapsed_ns < fault.at_s * 1e9:
            return False
        if (number, board) in self._started:
            return False
        self._started.add((number, board))
        return True


def parse_fault(text: str) -> ScriptedFault:
    """Read a fault: `KIND[:key=value,…]`.

    Keys are rate, at (s), for (s), board, direction, code and motor.

    Raises:
        MockConfigError: Something in it cannot be understood; every problem is listed.
    """
    name, _, rest = text.partition(":")
    kinds = {kind.value: kind for kind in FaultKind}
    kind = kinds.get(name)
    problems: list[str] = []
    if kind is None:
        problems.append(f"kind {name!r} is unknown{suggest(name, kinds)}")
    given: dict[str, str] = {}
    for item in filter(None, rest.split(",")):
        key, equals, value = (part.strip() for part in item.partition("="))
        if key not in _KEYS:
            problems.append(f"key {key!r} is unknown; known: {', '.join(_KEYS)}")
        elif not equals:
            problems.append(f"{key!r} has no value: write {key}=VALUE")
        elif key in given:
            problems.append(f"{key} is given twice")
        elif kind and not _KEYS[key].is_for(kind):
            problems.append(f"{key}={value}: means nothing for {name}")
        else:
            problems += _KEYS[key].problems(key, value)
        given[key] = value
    if kind in _LASTING and "at" not in given:
        problems.append(f"{name} lasts: say when it starts, {name}:at=SECONDS")
    elif kind not in _LASTING and ("rate" in given) == ("at" in given):
        problems.append("give either rate=PROBABILITY or at=SECONDS")
    if problems or kind is None:
        raise MockConfigError(f"fault {text!r}", problems)
    return ScriptedFault(
        kind=kind,
        rate=float(given.get("rate", 0.0)),
        at_s=float(given["at"]) if "at" in given else None,
        for_s=float(given.get("for", _LASTING.get(kind, 0.0))),
        board=int(float(given["board"])) if "board" in given else None,
        direction=given.get("direction"),
        code=int(float(given.get("code", 7))),
        motor=int(float(given["motor"])) if "motor" in given else None,
    )


class _Key(NamedTuple):
    """What may stand behind a key, and which faults it means something for."""

    low: float = 0.0
    high: float = 0.0
    is_whole: bool = False
    words: tuple[str, ...] = ()
    is_for: Callable[[FaultKind], bool] = lambda _: True

    def problems(self, key: str, text: str) -> list[str]:
        if self.words:
            expected = " or ".join(self.words)
            return [] if text in self.words else [f"{key}={text}: must be {expected}"]
        try:
            value = float(text)
        except ValueError:
            return [f"{key}={text}: must be a number"]
        if not self.low <= value <= self.high:
            return [f"{key}={text}: must lie between {self.low:g} and {self.high:g}"]
        if self.is_whole and not value.is_integer():
            return [f"{key}={text}: must be a whole number"]
        return []


_KEYS = {
    "rate": _Key(0.0, 1.0, is_for=lambda kind: kind not in _LASTING),
    "at": _Key(0.0, 1e6),
    "for": _Key(0.0, 1e6, is_for=lambda kind: kind in _LASTING),
    "board": _Key(0, 63, is_whole=True, is_for=lambda kind: kind is not FaultKind.SKIP),
    "code": _Key(0, 15, is_whole=True, is_for=lambda kind: kind is FaultKind.BOARD_ERROR),
    "motor": _Key(1, 2, is_whole=True, is_for=lambda kind: kind is FaultKind.BOARD_ERROR),
    "direction": _Key(words=("command", "reply"), is_for=lambda kind: kind is FaultKind.FLIP),
}
