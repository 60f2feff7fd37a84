"""Whose turn it is, and who has waited for too long."""

from __future__ import annotations

import pytest

from daq.stream.errors import RefusedError
from daq.stream.gateway.packets import EXPIRES_S, RawRequest
from daq.stream.gateway.request_queue import PER_CLIENT_MAX, WAITING_MAX, Asked, RequestQueue
from daq.stream.messages import AnyCommand, Disable, Enable, Status, Stop


class Rig:
    """A queue with a clock of its own."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.queue = RequestQueue(lambda: self.now_s)

    def add(self, command: AnyCommand, client: bytes = b"a") -> None:
        self.queue.add(Asked((client,), command, RawRequest(b"", None)))

    def take(self) -> tuple[AnyCommand, bool] | None:
        taken = self.queue.take()
        return None if taken is None else (taken[0].command, taken[1])


def test_in_their_order_but_stops_first() -> None:
    rig = Rig()
    for command in (Enable(id=1), Status(id=2), Disable(id=3), Enable(id=4), Stop(id=5)):
        rig.add(command)

    ids = [taken[0].id for _ in range(5) if (taken := rig.take())]

    assert ids == [3, 5, 1, 2, 4]
    assert rig.take() is None


def test_nobody_waits_for_long_but_a_stop() -> None:
    rig = Rig()
    for command in (Enable(), Disable(), Stop()):
        rig.add(command)
    rig.now_s = EXPIRES_S + 0.01
    rig.add(Status())

    assert rig.take() == (Disable(), True)
    assert rig.take() == (Stop(), False)
    assert rig.take() == (Enable(), True)
    assert rig.take() == (Status(), False)


def test_a_client_has_few_places_and_a_stop_has_its_own() -> None:
    rig = Rig()
    for _ in range(PER_CLIENT_MAX):
        rig.add(Status())
    with pytest.raises(RefusedError) as refused:
        rig.add(Status())
    assert refused.value.code == "too-many"
    rig.add(Status(), b"another")
    rig.add(Stop())
    assert rig.take() == (Stop(), False)
    rig.take()
    rig.add(Status())


def test_all_together_have_so_many() -> None:
    rig = Rig()
    for number in range(WAITING_MAX):
        rig.add(Status(), b"%d" % number)
    with pytest.raises(RefusedError):
        rig.add(Status(), b"one more")
    rig.add(Stop(), b"one more")
