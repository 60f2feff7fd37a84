"""Who is on the other end of a link? Asks without moving anything.

On SPI the first question is a frame with a wrong checksum, which every firmware ignores: the
board's reply shows its state, latched errors included, and nothing changes. Only when it is sound
and free of faults is it asked, by frames with everything disabled, whether it hears us.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from daq.board import Board
from daq.errors import TransportError
from daq.findings import Finding, Level
from daq.links.failures import transport_error
from daq.links.link import Link
from firmware_protocol.codec import command_codec, reply_codec
from firmware_protocol.errors import ProtocolError, ProtocolVersionError, is_idle_line
from firmware_protocol.fields import Framing
from firmware_protocol.profiles import MODE_FLAGS, PROFILES, Profile
from firmware_protocol.values import ReplyValues

_QUESTIONS = 50
_PERIOD_NS = 1_000_000
_ENABLE_SYSTEM = next(1 << flag.bit for flag in MODE_FLAGS if flag.name == "ES")


def diagnose_board(
    name: str,
    profile: Profile,
    link: Link,
    *,
    now_ns: Callable[[], int],
    sleep_until_ns: Callable[[int], None],
) -> Iterator[Finding]:
    """Presence, wire format, faults and hearing of one board.

    Args:
        name: As in the robot file.
        profile: What the robot file says it speaks.
        link: Open link to it.
        now_ns: Monotonic clock.
        sleep_until_ns: Waits on that clock.
    """
    subject = f"board {name}"
    try:
        frame = _ask_passively(profile, link)
        try:
            reply = reply_codec(profile, link.framing).decode(frame)
        except ProtocolVersionError as error:
            yield Finding(Level.PROBLEM, subject, str(error), _fix_for_version(error.version))
            return
        except ProtocolError:
            yield _identify(subject, profile, link, frame)
            return
        yield from _state(subject, profile, reply)
        if profile.fault_of(reply.status) is None:
            yield _hearing(subject, Board(name, profile, link, now_ns=now_ns), sleep_until_ns)
    except OSError as error:
        failure: TransportError = transport_error(link.name, error)
        yield Finding(Level.PROBLEM, subject, str(failure), "check cable, power and driver")


def _ask_passively(profile: Profile, link: Link) -> bytes:
    codec = command_codec(profile, link.framing)
    if link.framing is Framing.RS485:
        # An RS-485 board answers valid commands only. ES without any motor leaves latched errors
        # as they are; ES = 0 would clear them on some boards.
        return link.exchange(codec.encode(codec.make(mode=_ENABLE_SYSTEM)))
    return link.exchange(_with_wrong_checksum(codec.encode(codec.make())))


def _with_wrong_checksum(frame: bytes) -> bytes:
    return frame[:-1] + bytes([frame[-1] ^ 0xFF])


def _identify(subject: str, profile: Profile, link: Link, frame: bytes) -> Finding:
    """Why the reply is not one of the expected profile."""
    if not frame or is_idle_line(frame):
        how = f"the line is stuck at 0x{frame[0]:02x}" if frame else "nothing came back"
        return Finding(
            Level.PROBLEM,
            subject,
            f"nobody answers on {link.name}: {how}",
            "check the board's power, the cable and the chip select",
        )
    found = _find_other_profiles(link) if link.framing is Framing.SPI else []
    if found:
        names = " or ".join(found)
        size = PROFILES[found[0]].frame_size
        return Finding(
            Level.PROBLEM,
            subject,
            f"the board speaks {names} ({size}-byte frames), the robot file says {profile.name} "
            f"({profile.frame_size} bytes)",
            f'set profile = "{found[0]}" for this board in the robot file, or flash its firmware'
            + ("; on the wire these two cannot be told apart" if len(found) > 1 else ""),
        )
    return Finding(
        Level.PROBLEM,
        subject,
        f"{link.name} answers, but with no frame of any known profile: {frame.hex()}",
        "check SPI mode and speed (or the baud rate), ground and cable length; a damaged signal "
        "often gets better at a lower speed",
    )


def _find_other_profiles(link: Link) -> list[str]:
    """Profiles whose frames are in what the board sends, wherever they start."""
    window = max(profile.frame_size for profile in PROFILES.values())
    # Longer than any frame, so wrong for most: what matters is what comes back.
    stream = b"".join(link.exchange(b"\xff" * window) for _ in range(4))
    found = []
    for name, profile in PROFILES.items():
        codec, size = reply_codec(profile), profile.frame_size
        starts = range(len(stream) - size + 1)
        if any(_is_of(codec.decode, stream[start : start + size]) for start in starts):
            found.append(name)
    if found:
        # Leave a board that counts bytes across windows at the start of a frame.
        missing = -len(stream) % PROFILES[found[0]].frame_size
        if PROFILES[found[0]].behaviour.is_misaligned_by_truncation and missing:
            link.realign(missing)
    return found


def _is_of(decode: Callable[[bytes], object], frame: bytes) -> bool:
    try:
        decode(frame)
    except ProtocolError:
        return False
    return True


def _state(subject: str, profile: Profile, reply: ReplyValues) -> Iterator[Finding]:
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
        )
    fault = profile.fault_of(reply.status)
    if fault is not None:
        yield Finding(
            Level.PROBLEM, subject, f"reports error {fault.code}: {fault.meaning}", fault.remedy
        )


def _hearing(subject: str, board: Board, sleep_until_ns: Callable[[int], None]) -> Finding:
    """Whether commands arrive, and how many exchanges go wrong."""
    deadline_ns = board.now_ns()
    for _ in range(_QUESTIONS):
        deadline_ns += _PERIOD_NS
        sleep_until_ns(deadline_ns)
        board.exchange(board.command())
    counters = board.counters
    good = counters.valid + counters.late
    if good == _QUESTIONS:
        return Finding(Level.OK, subject, f"{_QUESTIONS} of {_QUESTIONS} exchanges confirmed")
    lost = {
        "replies corrupt": counters.corrupt,
        "replies lost": counters.lost_replies,
        "replies truncated": counters.truncated,
        "replies repeated": counters.stale,
        "commands not taken": counters.lost_commands,
        "failures that followed": counters.consequent,
    }
    details = ", ".join(f"{count} {what}" for what, count in lost.items() if count)
    return Finding(
        Level.PROBLEM if good < _QUESTIONS / 2 else Level.WARNING,
        subject,
        f"only {good} of {_QUESTIONS} exchanges confirmed: {details}",
        "check cable and ground, or lower the speed",
    )


def _fix_for_version(version: int) -> str:
    names = [p.name for p in PROFILES.values() if p.reply.protocol_version == version]
    if not names:
        return "this firmware is newer than armature: update one of them"
    return f"profiles of version {version}: {', '.join(names)}"
