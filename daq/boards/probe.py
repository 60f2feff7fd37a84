"""Finds out which board is on the other end of a link, without moving anything.

On SPI the first questions are frames with a wrong checksum, which every firmware ignores: the
board's replies show its state, latched errors included, and nothing changes. Only when it is sound,
free of faults and at rest is it asked, by frames with everything disabled, whether it hears us.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import asdict

from daq.boards.board import Board
from daq.errors import TransportError
from daq.links.failures import transport_error
from daq.links.link import BoardLink
from daq.system.findings import Finding, Level
from firmware_protocol.codec import command_codec, reply_codec
from firmware_protocol.errors import ProtocolError, ProtocolVersionError, is_idle_line
from firmware_protocol.fields import Fault, Framing
from firmware_protocol.profile import Profile
from firmware_protocol.profiles import MODE_BITS, PROFILES, STATUS_BITS

_ATTEMPTS = 4
_QUESTIONS = 50
_GOOD_ENOUGH = 0.9
_PERIOD_NS = 1_000_000
_NONSENSE = b"\xff"
"""What is sent when only the replies matter: no frame of it has a right checksum."""
_ENABLE_SYSTEM = MODE_BITS["ES"]
_MOTORS_ENABLED = STATUS_BITS["M1E"] | STATUS_BITS["M2E"]


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
    board = Board(name, profile, link, now_ns=now_ns)
    try:
        yield from _diagnose(subject, board, sleep_until_ns)
    except OSError as error:
        failure: TransportError = transport_error(link.name, error)
        yield Finding(
            Level.PROBLEM, subject, str(failure), "check cable, power and driver", "failed"
        )


def _diagnose(
    subject: str, board: Board, sleep_until_ns: Callable[[int], None]
) -> Iterator[Finding]:
    profile, link = board.profile, board.link
    codec = reply_codec(profile, link.framing)
    frame = _ask_passively(board, sleep_until_ns)
    if not codec.is_sound(frame) and not is_idle_line(frame) and _bring_in_step(profile, link):
        text = "the last program left it in the middle of a frame; it is in step again"
        yield Finding(Level.NOTE, subject, text, code="realigned")
        frame = _ask_passively(board, sleep_until_ns)
    try:
        reply = codec.decode(frame)
    except ProtocolVersionError as error:
        fix = _fix_for_version(error.version)
        yield Finding(Level.PROBLEM, subject, str(error), fix, "other-version")
        return
    except ProtocolError:
        yield _identify(subject, profile, link, frame)
        return
    yield from _presence(subject, profile)
    if fault := profile.fault_of(reply.status):
        yield _faulty(subject, fault)
        return
    if reply.status & _MOTORS_ENABLED and link.framing is Framing.SPI:
        yield Finding(
            Level.PROBLEM,
            subject,
            "its motors are enabled: another program drives it, or ended without switching it off",
            "stop that program, or switch the board off; the arm may fall",
            "enabled",
        )
        return
    yield _hearing(subject, board, sleep_until_ns)


def _ask_passively(board: Board, sleep_until_ns: Callable[[int], None]) -> bytes:
    """Return what the board reports now, without a command that changes anything."""
    profile, link = board.profile, board.link
    codec = reply_codec(profile, link.framing)
    # What it sends was put together after earlier frames, which may have been hours ago: the first
    # replies are old news. A damaged one is asked for again.
    old_news = profile.behaviour.reply_lag_max
    frame = b""
    for number in range(old_news + _ATTEMPTS):
        sleep_until_ns(board.now_ns() + _PERIOD_NS)
        frame = link.exchange(_question(profile, link.framing))
        if number >= old_news and codec.is_sound(frame):
            break
    return frame


def _question(profile: Profile, framing: Framing) -> bytes:
    codec = command_codec(profile, framing)
    if framing is Framing.RS485:
        # An RS-485 board answers valid commands only. ES without any motor leaves latched errors
        # as they are; ES = 0 would clear them on some boards.
        return codec.encode(codec.make(mode=_ENABLE_SYSTEM))
    frame = codec.encode(codec.make())
    return frame[:-1] + bytes([frame[-1] ^ 0xFF])


def _bring_in_step(profile: Profile, link: BoardLink) -> bool:
    """Whether the board counts bytes across windows and was not at the start of a frame."""
    if link.framing is not Framing.SPI or not profile.behaviour.is_receiver_shifted:
        return False
    size = profile.frame_size
    stream = b"".join(link.exchange(_NONSENSE * size) for _ in range(3))
    start = _find_frame(profile, stream)
    if not start:
        return False
    link.realign(start % size)
    return True


def _identify(subject: str, profile: Profile, link: BoardLink, frame: bytes) -> Finding:
    """Return why the reply is not one of the expected profile."""
    is_silent = not frame or is_idle_line(frame)
    found = [] if is_silent and link.framing is Framing.SPI else _find_other_profiles(profile, link)
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
    if is_silent:
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


def _find_other_profiles(expected: Profile, link: BoardLink) -> list[str]:
    """Return the profiles of another frame length that the board speaks."""
    others = [p for p in PROFILES.values() if p.frame_size != expected.frame_size]
    if link.framing is Framing.RS485:
        return [other.name for other in others if _answers_as(other, link)]
    window = max(profile.frame_size for profile in PROFILES.values())
    # Longer than any frame, so wrong for most: what matters is what comes back.
    stream = b"".join(link.exchange(_NONSENSE * window) for _ in range(4))
    found = [(p, start) for p in others if (start := _find_frame(p, stream)) is not None]
    for other, start in found[:1]:
        # Leave a board that counts bytes across windows at the start of a frame.
        missing = (start - len(stream)) % other.frame_size
        if other.behaviour.is_receiver_shifted and missing:
            link.realign(missing)
    return [other.name for other, _ in found]


def _answers_as(profile: Profile, link: BoardLink) -> bool:
    """Whether an RS-485 board answers a question of this profile.

    The link waits for replies of another length and may cut this one, so only its header counts.
    """
    received = link.exchange(_question(profile, link.framing))
    return received.startswith(reply_codec(profile, link.framing).header)


def _find_frame(profile: Profile, stream: bytes) -> int | None:
    """Return where in a stream of bytes the first sound reply of a profile starts."""
    codec = reply_codec(profile)
    for start in range(len(stream) - codec.size + 1):
        with contextlib.suppress(ProtocolError):
            codec.decode_raw(stream[start : start + codec.size])
            return start
    return None


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


def _faulty(subject: str, fault: Fault) -> Finding:
    text = f"reports error {fault.code}: {fault.meaning}"
    return Finding(Level.PROBLEM, subject, text, fault.remedy, f"error-{fault.code}")


def _hearing(subject: str, board: Board, sleep_until_ns: Callable[[int], None]) -> Finding:
    """Check whether commands arrive, how many exchanges fail, and whether a fault comes up."""
    for _ in range(_QUESTIONS):
        # Not by a fixed grid: after a hold-up the questions would bunch, too fast for some boards.
        sleep_until_ns(board.now_ns() + _PERIOD_NS)
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
    return Finding(
        Level.PROBLEM if good < _QUESTIONS * _GOOD_ENOUGH else Level.WARNING,
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
