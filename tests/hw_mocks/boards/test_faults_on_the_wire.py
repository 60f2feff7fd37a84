"""Each kind of fault, as it shows on an SPI link in virtual time."""

from __future__ import annotations

import errno
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from board_rig import ES, MS_NS, ON, STATUS, Rig

from daq.robot.description import Robot
from firmware_protocol.errors import CrcError, FrameLengthError, ProtocolError
from hw_mocks.clock import VirtualClock
from hw_mocks.faults.script import FaultKind, FaultScript, parse_fault
from hw_mocks.mock_link import mock_links

MakeRig = Callable[..., Rig]


class Line:
    """A link with faults, one exchange per millisecond from 1 ms on."""

    def __init__(self, rig: Rig, *faults: str, board: int = 0, **options: Any) -> None:
        self.rig = rig
        self.clock = VirtualClock()
        self.script = FaultScript([parse_fault(text) for text in faults], **options)
        self.links = mock_links(rig.robot, self.clock, self.script)
        self.link = self.links[board]

    def exchange(self, **fields: Any) -> bytes:
        self.clock.advance_ns(MS_NS)
        return self.link.exchange(self.rig.frame(**fields))

    def run(self, count: int, **fields: Any) -> list[Any]:
        """Decoded replies, or what is wrong with them."""
        replies: list[Any] = []
        for _ in range(count):
            try:
                replies.append(self.rig.decode(self.exchange(**fields)))
            except (ProtocolError, OSError) as error:
                replies.append(error)
        return replies

    @property
    def kinds(self) -> list[FaultKind]:
        return [event.kind for event in self.script.events]


@pytest.fixture
def arm(rig: MakeRig) -> Rig:
    return rig("arm")


def indices(replies: list[Any]) -> list[int | None]:
    return [getattr(reply, "index", None) for reply in replies]


def test_without_faults_nothing_is_touched(arm: Rig) -> None:
    line = Line(arm)
    assert indices(line.run(5)) == [0, 1, 2, 3, 4]
    assert line.script.is_empty and not line.kinds


def test_a_flipped_reply_bit_is_one_bit(arm: Rig, rig: MakeRig) -> None:
    line, clean = Line(arm, "flip:at=0.003,direction=reply"), Line(rig("arm"))
    damaged = [line.exchange() for _ in range(5)]
    genuine = [clean.exchange() for _ in range(5)]
    differing = [
        int.from_bytes(a, "big") ^ int.from_bytes(b, "big")
        for a, b in zip(damaged, genuine, strict=True)
    ]
    assert [value.bit_count() for value in differing] == [0, 0, 1, 0, 0]
    (event,) = line.script.events
    assert (event.kind, event.exchange, event.board) == (FaultKind.FLIP, 2, 0)
    assert event.detail.startswith("reply bit ")


def test_a_flipped_command_bit_is_a_lost_command(arm: Rig) -> None:
    line = Line(arm, "flip:at=0.003,direction=command")
    assert indices(line.run(6)) == [0, 1, 2, 2, 4, 5]


def test_a_flip_without_direction_hits_either(arm: Rig) -> None:
    line = Line(arm, "flip:rate=0.5")
    line.run(200)
    assert {event.detail.split()[0] for event in line.script.events} == {"command", "reply"}


def test_a_dropped_exchange_never_reaches_the_board(arm: Rig) -> None:
    line = Line(arm, "drop:at=0.003")
    replies = line.run(6)
    assert isinstance(replies[2], CrcError)
    assert indices(replies) == [0, 1, None, 2, 4, 5]


def test_a_repeated_reply_is_the_one_before(arm: Rig) -> None:
    line = Line(arm, "repeat:at=0.003")
    frames = [line.exchange() for _ in range(5)]
    assert frames[2] == frames[1]
    assert indices([arm.decode(frame) for frame in frames]) == [0, 1, 1, 3, 4]


def test_a_repeat_in_the_first_exchange_has_nothing_to_repeat(arm: Rig) -> None:
    assert indices(Line(arm, "repeat:at=0").run(2)) == [0, 1]


def test_a_truncated_exchange_ends_early_on_a_word(profile: str, rig: MakeRig) -> None:
    line = Line(rig(profile), "truncate:at=0.003")
    frames = [line.exchange() for _ in range(3)]
    assert 0 < len(frames[2]) < line.rig.profile.frame_size
    assert len(frames[2]) % 2 == 0
    (event,) = line.script.events
    assert event.detail == f"{len(frames[2])} of {line.rig.profile.frame_size} bytes"
    with pytest.raises(FrameLengthError):
        line.rig.decode(frames[2])
    # Replies stay sound; where the receiver counts on, commands are lost until it is realigned.
    echoes = indices(line.run(6))[3:]
    is_shifted = line.rig.profile.behaviour.is_receiver_shifted
    assert (set(echoes) == {2}) == is_shifted
    if is_shifted:
        line.link.realign(line.rig.profile.frame_size - len(frames[2]))
        assert indices(line.run(3))[1:] == [line.rig.index - 2, line.rig.index - 1]


def test_a_delayed_board_acts_one_exchange_late_and_catches_up(arm: Rig) -> None:
    line = Line(arm, "delay:at=0.003")
    assert indices(line.run(8)) == [0, 1, 2, 2, 3, 5, 6, 7]


@pytest.mark.parametrize(("kind", "level"), [("stuck-low", 0x00), ("stuck-high", 0xFF)])
def test_a_stuck_line_reads_the_same_all_over_while_the_board_obeys(
    arm: Rig, kind: str, level: int
) -> None:
    line = Line(arm, f"{kind}:at=0.003,for=0.004")
    frames = [line.exchange(mode=ES) for _ in range(8)]
    assert [set(frame) == {level} for frame in frames] == [False] * 2 + [True] * 4 + [False] * 2
    assert arm.decode(frames[6]).index == 6


def test_a_stale_index_is_frozen_while_the_board_obeys(arm: Rig) -> None:
    line = Line(arm, "stale-index:at=0.004,for=0.005")
    replies = line.run(12, mode=ES)
    assert indices(replies) == [0, 1, 2, 3, 3, 3, 3, 3, 3, 9, 10, 11]
    assert len({reply.timestamp_ms for reply in replies}) == 12


def test_a_brown_out_reboots_the_board(profile: str, rig: MakeRig) -> None:
    line = Line(rig(profile), "brown-out:at=0.2,for=0.05")
    replies = line.run(300, mode=ON)
    assert replies[198].status & STATUS["M1R"]
    assert all(isinstance(reply, CrcError) for reply in replies[199:249])
    fresh = replies[249]
    assert (fresh.timestamp_ms, fresh.index) == (0, 0)
    assert not fresh.status & (STATUS["M1R"] | 0xF)
    assert line.kinds == [FaultKind.BROWN_OUT]


def test_a_brown_out_between_two_exchanges_is_not_missed(arm: Rig) -> None:
    line = Line(arm, "brown-out:at=0.0101,for=0.0002")
    replies = line.run(13)
    assert isinstance(replies[10], CrcError)
    assert replies[11].timestamp_ms == 0


@pytest.mark.parametrize("code", [0, 1, 4, 7, 15])
def test_a_board_error_is_latched(profile: str, rig: MakeRig, code: int) -> None:
    line = Line(rig(profile), f"board-error:at=0.08,code={code}")
    replies = line.run(100, mode=ON, iq_ff_a=0.3)
    assert replies[70].status & (STATUS["M1R"] | 0xF) == STATUS["M1R"]
    is_ready = line.rig.profile.behaviour.is_ready_after_error
    assert replies[-1].status & (STATUS["M1R"] | 0xF) == STATUS["M1R"] * is_ready | code
    assert abs(replies[-1].iq_a[0]) < 0.1


@pytest.mark.parametrize("motor", [1, 2])
def test_a_board_error_may_be_of_one_motor(arm: Rig, motor: int) -> None:
    line = Line(arm, f"board-error:at=0.08,code=7,motor={motor}")
    status = line.run(100, mode=ON)[-1].status
    assert status & (STATUS["M1R"] | 0xF) == (STATUS["M1R"] if motor == 2 else 0) | 7


def test_a_vanished_device_does_not_come_back_by_itself(arm: Rig) -> None:
    line = Line(arm, "vanish:at=0.003")
    replies = line.run(50)
    assert {reply.errno for reply in replies[2:]} == {errno.ENODEV}
    assert "mock:bench" in str(replies[2])


def test_a_vanished_device_may_return(arm: Rig) -> None:
    replies = Line(arm, "vanish:at=0.003,for=0.002").run(6)
    assert indices(replies) == [0, 1, None, None, 2, 5]


def test_an_io_error_passes(arm: Rig) -> None:
    replies = Line(arm, "io-error:at=0.003,for=0.002").run(6)
    assert [reply.errno for reply in replies[2:4]] == [errno.EIO] * 2
    assert indices(replies)[4:] == [2, 5]


def test_the_watchdog_strikes_while_the_device_is_gone(arm: Rig) -> None:
    line = Line(arm, "io-error:at=0.1,for=0.05")
    replies = line.run(160, mode=ON, timeout_ms=20)
    assert replies[-1].status & 0xF == 2


# --- scripts --------------------------------------------------------------------------------------


def test_random_faults_come_at_their_rate(arm: Rig) -> None:
    line = Line(arm, "drop:rate=0.1")
    line.run(2000)
    assert 150 < len(line.kinds) < 250


def test_random_faults_can_be_kept_apart(arm: Rig) -> None:
    line = Line(arm, "drop:rate=0.5", apart=4)
    line.run(500)
    exchanges = [event.exchange for event in line.script.events]
    gaps = [b - a for a, b in pairwise(exchanges)]
    assert min(gaps) == 5


def test_the_same_seed_strikes_the_same_exchanges(rig: MakeRig) -> None:
    def events(seed: int) -> list[object]:
        line = Line(rig("arm"), "flip:rate=0.1", "truncate:rate=0.1", seed=seed)
        line.run(200)
        return list(line.script.events)

    assert events(1) == events(1)
    assert events(1) != events(2)


def test_a_fault_of_one_board_leaves_the_other_alone(rig: MakeRig, arm4: Robot) -> None:
    line = Line(rig("arm", arm4, board=1), "drop:rate=1,board=1", board=1)
    other = Line(rig("arm", arm4), "drop:rate=1,board=1", board=0)
    assert indices(line.run(3)) == [None] * 3
    assert indices(other.run(3)) == [0, 1, 2]


def test_a_timed_fault_of_all_boards_strikes_each_once(rig: MakeRig, arm4: Robot) -> None:
    line = Line(rig("arm", arm4), "drop:at=0.002")
    for _ in range(4):
        line.clock.advance_ns(MS_NS)
        for link in line.links:
            link.exchange(line.rig.frame())
    assert [(event.board, event.exchange) for event in line.script.events] == [(0, 1), (1, 1)]


def test_two_faults_at_the_same_time_strike_one_after_the_other(arm: Rig) -> None:
    line = Line(arm, "drop:at=0.003", "repeat:at=0.003")
    line.run(5)
    assert [(event.kind, event.exchange) for event in line.script.events] == [
        (FaultKind.DROP, 2),
        (FaultKind.REPEAT, 3),
    ]


def test_lasting_faults_are_logged_once(arm: Rig) -> None:
    line = Line(arm, "stuck-low:at=0.003,for=0.01")
    line.run(20)
    (event,) = line.script.events
    assert (event.kind, event.exchange, event.detail) == (FaultKind.STUCK_LOW, 2, "for 0.01 s")


@pytest.mark.parametrize("kind", ["flip", "truncate", "repeat", "drop", "delay"])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 100])
def test_windows_of_any_length_survive_any_fault(
    profile: str, kind: str, length: int, rig: MakeRig
) -> None:
    line = Line(rig(profile), f"{kind}:rate=1")
    for _ in range(5):
        line.clock.advance_ns(MS_NS)
        assert len(line.link.exchange(bytes(length))) <= length
