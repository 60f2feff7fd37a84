"""Finds out which board is on the other end of a link, without moving anything.

On SPI the first questions are frames with a wrong checksum, which every firmware ignores: the
board's replies show its state, latched errors included, and nothing changes. Only when it is sound,
free of faults and at rest is it asked, by frames with everything disabled and no time-out, whether
it hears us; these are the good-bye as well. A board that is out of step is brought back by the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict

from daq.boards.board import WORD, Board, is_blank
from daq.errors import TransportError
from daq.links.failures import transport_error
from daq.links.link import FILLER, BoardLink
from daq.system.findings import Finding, Level
from firmware_protocol.behaviour import ErrorsClear
from firmware_protocol.codec import command_codec, reply_codec
from firmware_protocol.errors import ProtocolError, ProtocolVersionError, is_idle_line
from firmware_protocol.fields import Fault, Framing
from firmware_protocol.profile import Profile
from firmware_protocol.profiles import MODE_BITS, PROFILES, STATUS_BITS
from firmware_protocol.values import ReplyValues

_ATTEMPTS = 4
_QUESTIONS = 50
_GOOD_ENOUGH = 0.8
"""Of all exchanges but those that were lost with the one before: a bad link, but one to run on."""
_WAKE_UP_MAX = 20
_PERIOD_NS = 1_000_000
_ENABLE_SYSTEM = MODE_BITS["ES"]
_LONGEST_TIMEOUT_MS = 255
_MOTORS_ENABLED = STATUS_BITS["M1E"] | STATUS_BITS["M2E"]


class _MeteredLink:
    """Counts the bytes that went through a link, so that a board can be left where it was."""

    def __init__(self, link: BoardLink) -> None:
        self._link = link
        self.name, self.framing, self.close = link.name, link.framing, link.close
        self.clock_hz = link.clock_hz
        self.bytes = 0

    @property
    def resynchronised(self) -> int:
        return self._link.resynchronised

    def exchange(self, frame: bytes) -> bytes:
        received = self._link.exchange(frame)
        self.bytes += len(received)
        return received

    def realign(self, missing: int) -> None:
        self._link.realign(missing)
        self.bytes += missing


class _Asked(Board):
    """A board that is asked at a pace which every firmware can follow.

    `mode_at_first` is the mode of the commands by which it is first made to answer, where only
    commands do that.
    """

    def __init__(
        self,
        name: str,
        profile: Profile,
        link: BoardLink,
        *,
        now_ns: Callable[[], int],
        sleep_until_ns: Callable[[int], None],
        mode_at_first: int,
    ) -> None:
        metered = _MeteredLink(link)
        super().__init__(
            name, profile, metered, command_timeout_ms=_LONGEST_TIMEOUT_MS, now_ns=now_ns
        )
        self.metered = metered
        self.sleep_until_ns = sleep_until_ns
        self.mode_at_first = mode_at_first

    def pause(self) -> None:
        """Wait for the next question; not by a fixed grid: after a hold-up they would bunch."""
        self.sleep_until_ns(self.now_ns() + _PERIOD_NS)

    def ask_passively(self) -> bytes:
        """Return what the board reports now, without a command that changes anything."""
        codec = reply_codec(self.profile, self.link.framing)
        # Some boards put a reply together when they get a frame, which may have been hours ago:
        # the first replies are old news. A damaged one is asked for again.
        old_news = self.profile.behaviour.reply_lag_max
        frame = b""
        for number in range(old_news + _ATTEMPTS):
            self.pause()
            frame = self.link.exchange(self._question())
            if number >= old_news and codec.is_sound(frame):
                break
        return frame

    def _question(self) -> bytes:
        codec = command_codec(self.profile, self.link.framing)
        if self.link.framing is Framing.SPI:
            return FILLER * codec.size  # its checksum is wrong
        # An RS-485 board answers valid commands only.
        return codec.encode(self.command(mode=self.mode_at_first))

    def wake(self, mode: int = 0, *, tries: int = _WAKE_UP_MAX) -> bool:
        """Send commands without any motor until one is confirmed; return whether one was."""
        first = self.index + 1
        for _ in range(tries):
            self.pause()
            self.exchange(self.command(mode=mode))
            if self.has_taken(first):
                return True
        return False

    def seek_step(self) -> bool:
        """Clock single words, at the same pace, until a command is confirmed.

        For boards that should not get out of step, or cannot follow the words of a running loop.
        """
        for _ in range(self.profile.frame_size // WORD - 1):
            self.pause()
            self.link.realign(WORD)
            if self.wake(tries=self.profile.behaviour.reply_lag_max + 1):
                self.cured += 1
                return True
        self.pause()
        self.link.realign(WORD)
        return False


def diagnose_board(
    name: str,
    profile: Profile,
    link: BoardLink,
    *,
    now_ns: Callable[[], int],
    sleep_until_ns: Callable[[int], None],
) -> Iterator[Finding]:
    """Diagnose one board: presence, wire format, faults and whether commands arrive."""
    subject = f"board {name}"

    def make_board() -> _Asked:
        return _Asked(
            name,
            profile,
            link,
            now_ns=now_ns,
            sleep_until_ns=sleep_until_ns,
            mode_at_first=_harmless_mode(profile),
        )

    try:
        yield from _diagnose(subject, make_board)
    except OSError as error:
        yield _unreachable(subject, link, error)


def find_obstacle(
    name: str,
    profile: Profile,
    link: BoardLink,
    *,
    now_ns: Callable[[], int],
    sleep_until_ns: Callable[[int], None],
) -> Finding | None:
    """Return why a board should not be sent commands, or would take none; None if it is fine.

    Looks as `diagnose_board` does, but all of its commands have everything disabled (ES = 0). So
    over RS-485, where only commands are answered, boards that ES = 0 rids of an error show none.
    """
    subject = f"board {name}"
    board = _Asked(
        name, profile, link, now_ns=now_ns, sleep_until_ns=sleep_until_ns, mode_at_first=0
    )
    try:
        reply = _first_reply(subject, board)
        problem = reply if isinstance(reply, Finding) else _state_problem(subject, board, reply)
        if problem is None and not _is_heard(board):
            problem = _deaf(subject, link)
    except OSError as error:
        problem = _unreachable(subject, link, error)
    return problem


def _diagnose(subject: str, make_board: Callable[[], _Asked]) -> Iterator[Finding]:
    board = make_board()
    reply = _first_reply(subject, board)
    if isinstance(reply, Finding):
        yield reply
        return
    yield from _presence(subject, board.profile)
    problem = _state_problem(subject, board, reply)
    if problem is not None:
        yield problem
        return
    is_heard = _is_heard(board)
    if board.cured:
        text = (
            "it was out of step: it answered, but no command arrived, as after a transfer that was "
            "cut short; it is in step again"
        )
        yield Finding(Level.NOTE, subject, text, code="realigned")
    yield _hearing(subject, make_board()) if is_heard else _deaf(subject, board.link)


def _first_reply(subject: str, board: _Asked) -> ReplyValues | Finding:
    """Return what the board reports of itself; or why that is not a reply of its profile."""
    profile, link = board.profile, board.link
    frame = board.ask_passively()
    if _may_be_new(profile, frame):
        # Before its first command a board may say nothing but zeros.
        is_heard = board.wake(board.mode_at_first)
        frame = board.ask_passively()
        if not is_heard:
            board.wake()  # it may hear what we cannot see
    try:
        return reply_codec(profile, link.framing).decode(frame)
    except ProtocolVersionError as error:
        if link.framing is Framing.RS485:
            board.wake()
        fix = _fix_for_version(error.version)
        return Finding(Level.PROBLEM, subject, str(error), fix, "other-version")
    except ProtocolError:
        return _identify(subject, board, frame)


def _state_problem(subject: str, board: _Asked, reply: ReplyValues) -> Finding | None:
    """Return what the board reports that speaks against commands."""
    if fault := board.profile.fault_of(reply.status):
        return _faulty(subject, fault)
    if reply.status & _MOTORS_ENABLED and board.link.framing is Framing.SPI:
        return Finding(
            Level.PROBLEM,
            subject,
            "its motors are enabled: another program drives it, or ended without switching it off",
            "stop that program, or switch the board off; the arm may fall",
            "enabled",
        )
    return None


def _is_heard(board: _Asked) -> bool:
    """Whether the board takes commands, perhaps after it was brought back in step."""
    return board.wake() or (board.link.framing is Framing.SPI and board.seek_step())


def _unreachable(subject: str, link: BoardLink, error: OSError) -> Finding:
    failure: TransportError = transport_error(link.name, error)
    return Finding(Level.PROBLEM, subject, str(failure), "check cable, power and driver", "failed")


def _may_be_new(profile: Profile, frame: bytes) -> bool:
    """Whether this may be a board that has not had a command since it was powered."""
    return bool(frame) and profile.behaviour.is_blank_before_commands and is_blank(frame)


def _harmless_mode(profile: Profile) -> int:
    """Return the mode of a command that changes nothing on a board at rest.

    Where ES = 0 would clear a latched error, that is ES without any motor; with a time-out, then.
    """
    is_cleared = profile.behaviour.errors_clear is ErrorsClear.SYSTEM_DISABLED_ONE_FRAME
    return _ENABLE_SYSTEM if is_cleared else 0


def _identify(subject: str, board: _Asked, frame: bytes) -> Finding:
    """Return why the reply is not one of the expected profile."""
    profile, link = board.profile, board.link
    found = _find_other_profiles(board)
    if found:
        names = " or ".join(found)
        size = reply_codec(PROFILES[found[0]], link.framing).size
        expected_size = reply_codec(profile, link.framing).size
        return Finding(
            Level.PROBLEM,
            subject,
            f"the board speaks {names} ({size}-byte frames), the robot file says {profile.name} "
            f"({expected_size} bytes)",
            f'set profile = "{found[0]}" for this board in the robot file, or flash its firmware'
            + ("; on the wire these two cannot be told apart" if len(found) > 1 else ""),
            "other-profile",
        )
    if not frame or is_idle_line(frame):
        how = f"the line is stuck at 0x{frame[0]:02x}" if frame else "nothing came back"
        return Finding(
            Level.PROBLEM,
            subject,
            f"nobody answers on {link.name}: {how}",
            "check the board's power, the cable and the chip select (or the baud rate)",
            "silent",
        )
    return Finding(
        Level.PROBLEM,
        subject,
        f"{link.name} answers, but with no frame of any known profile: {frame.hex()}",
        "check SPI mode and speed (or the baud rate), ground and cable length; a damaged signal "
        "often gets better at a lower speed",
        "noise",
    )


def _find_other_profiles(board: _Asked) -> list[str]:
    """Return the profiles of another frame length that the board speaks."""
    others = [p for p in PROFILES.values() if p.frame_size != board.profile.frame_size]
    if board.link.framing is Framing.RS485:
        return [other.name for other in others if _answers_as(other, board)]
    window = FILLER * max(profile.frame_size for profile in PROFILES.values())
    found: list[Profile] = []
    for _ in range(_ATTEMPTS):
        board.pause()
        # Longer than most frames, so none of them counts; a reply is at the window's beginning.
        received = board.link.exchange(window)
        found = [other for other in others if _begins_with_reply(other, received)]
        if found:
            break
    shifted = [other for other in found if other.behaviour.is_receiver_shifted]
    if shifted:
        # A board that counts bytes across windows is left at the start of a frame, as it was.
        board.link.realign(-board.metered.bytes % shifted[0].frame_size)
    return [other.name for other in found]


def _begins_with_reply(profile: Profile, received: bytes) -> bool:
    codec = reply_codec(profile)
    frame = received[: codec.size]
    try:
        codec.decode_raw(frame)
    except ProtocolVersionError:
        return is_blank(frame)
    except ProtocolError:
        return False
    return True


def _answers_as(profile: Profile, board: _Asked) -> bool:
    """Whether an RS-485 board answers commands of this profile, which disable everything.

    The link waits for replies of another length and may cut this one, so only its header counts.
    """
    codec, link = command_codec(profile, Framing.RS485), board.link
    header = reply_codec(profile, Framing.RS485).header
    # The very first reply of some boards is unreadable.
    answers = [link.exchange(codec.encode(codec.make())) for _ in range(_ATTEMPTS)]
    return any(answer.startswith(header) for answer in answers)


def _presence(subject: str, profile: Profile) -> Iterator[Finding]:
    twins = [
        other.name
        for other in PROFILES.values()
        if other.frame_size == profile.frame_size
        and other.reply.protocol_version == profile.reply.protocol_version
        and other is not profile
    ]
    version = profile.reply.protocol_version
    yield Finding(
        Level.OK, subject, f"present, {profile.frame_size}-byte frames, protocol version {version}"
    )
    if twins:
        yield Finding(
            Level.NOTE,
            subject,
            f"{profile.name} and {', '.join(twins)} cannot be told apart on the wire: "
            "make sure that the robot file names the firmware that is on the board",
            code="alike",
        )
    overflow_s = profile.behaviour.clock_overflow_s
    if overflow_s is not None:
        yield Finding(
            Level.NOTE,
            subject,
            f"its clock overflows {overflow_s / 60.0:.1f} min after power-up, which is error 2 "
            "while current flows: power it off and on before a long run",
            code="clock-overflow",
        )


def _faulty(subject: str, fault: Fault) -> Finding:
    text = f"reports error {fault.code}: {fault.meaning}"
    return Finding(Level.PROBLEM, subject, text, fault.remedy, f"error-{fault.code}")


def _deaf(subject: str, link: BoardLink) -> Finding:
    return Finding(
        Level.PROBLEM,
        subject,
        f"it answers on {link.name}, but takes none of our commands: the echoed index stands still",
        "check the wire from the computer to the board (MOSI) and its ground, then power the board "
        "off and on",
        "not-heard",
    )


def _hearing(subject: str, board: _Asked) -> Finding:
    """Check how many exchanges fail, and whether a fault comes up."""
    for _ in range(_QUESTIONS):
        board.pause()
        reading = board.exchange(board.command())
        fault = reading.values and board.profile.fault_of(reading.values.status)
        if fault:
            return _faulty(subject, fault)
    counts = asdict(board.counters)
    good = counts["valid"] + counts["late"] + counts["unconfirmed"]
    if good == _QUESTIONS:
        return Finding(Level.OK, subject, f"{_QUESTIONS} of {_QUESTIONS} exchanges confirmed")
    late = f" ({counts['late']} of them late)" if counts["late"] else ""
    details = ", ".join(
        f"{count} {name.replace('_', ' ')}"
        for name, count in counts.items()
        if count and name not in ("exchanges", "valid", "unconfirmed", "late")
    )
    is_bad = good + counts["consequent"] < _QUESTIONS * _GOOD_ENOUGH
    return Finding(
        Level.PROBLEM if is_bad else Level.WARNING,
        subject,
        f"only {good} of {_QUESTIONS} exchanges confirmed{late}: {details}",
        "the board has rebooted: check its supply"
        if counts["restarted"]
        else "check cable and ground, or lower the speed; on a mock, a busy machine does this too",
        "restarted" if counts["restarted"] else "lost-exchanges",
    )


def _fix_for_version(version: int) -> str:
    names = [p.name for p in PROFILES.values() if p.reply.protocol_version == version]
    if not names:
        return "this firmware is newer than armature: update one of them"
    return f"profiles of version {version}: {', '.join(names)}"
