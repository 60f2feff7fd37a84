"""A client that keeps the lease of a loop, over a real socket and in real time."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from daq.errors import ConfigError
from daq.loop.lease import Lease
from daq.stream.command_client import CommandClient
from daq.stream.command_lease import RENEW_EVERY_S, CommandLease, holder_name
from daq.stream.errors import CommandRefusedError, RefusedError
from daq.stream.messages import (
    HOLDER_NAME_MAX,
    AnyCommand,
    Enable,
    ReleaseLease,
    RenewLease,
    Reset,
    Stop,
    TakeLease,
)
from daq.system.runtime_directory import RuntimeDirectory

pytestmark = pytest.mark.usefixtures("server")


class LeasingLoop:
    """A handler that knows nothing but the lease."""

    def __init__(self) -> None:
        self.lease = Lease()
        self.renewed = threading.Event()
        self.commands: list[AnyCommand] = []
        self.refusals: list[RefusedError] = []

    def __call__(self, command: AnyCommand, _payload: bytes) -> object:
        self.commands.append(command)
        now_ns = time.monotonic_ns()
        if self.refusals and isinstance(command, RenewLease):
            raise self.refusals.pop()
        if isinstance(command, TakeLease):
            self.lease.take(command.lease, command.name, now_ns, takes_over=command.takes_over)
        elif isinstance(command, ReleaseLease):
            self.lease.release(command.lease)
        elif not isinstance(command, Stop):
            self.lease.check(command.lease, now_ns)
        if isinstance(command, RenewLease):
            self.renewed.set()
        return {}

    @property
    def holder(self) -> str:
        held_by = self.lease.holder(time.monotonic_ns())
        return "" if held_by is None else held_by.name


@pytest.fixture
def loop() -> Any:
    return LeasingLoop()


@pytest.fixture
def client(runtime: RuntimeDirectory) -> Any:
    with CommandClient(runtime.commands) as client:
        yield client


@pytest.fixture
def other(runtime: RuntimeDirectory) -> Any:
    with CommandClient(runtime.commands) as client:
        yield client


def test_others_wait_until_it_is_given_back(client: Any, other: Any, loop: LeasingLoop) -> None:
    with CommandLease(client, "sweep"):
        client.ask(Enable())
        with pytest.raises(CommandRefusedError) as refusal:
            other.ask(Reset())
        assert refusal.value.code == "held"
        assert refusal.value.held_by is not None
        assert refusal.value.held_by.name == loop.holder == holder_name("sweep")
        assert other.ask(Stop()) == {}

    assert (client.lease, loop.holder) == ("", "")
    assert other.ask(Reset()) == {}


@pytest.mark.system
def test_it_is_renewed_whatever_the_script_does(client: Any, loop: LeasingLoop) -> None:
    with CommandLease(client):
        for _ in range(2):
            assert loop.renewed.wait(20 * RENEW_EVERY_S)
            loop.renewed.clear()

    assert len({command.lease for command in loop.commands}) == 1


@pytest.mark.system
def test_a_lost_renewal_is_made_up_for(client: Any, loop: LeasingLoop) -> None:
    loop.refusals = [RefusedError("no-answer", "the loop does not answer")]
    with CommandLease(client):
        assert loop.renewed.wait(20 * RENEW_EVERY_S)


def test_without_a_thread_it_is_renewed_by_hand(client: Any, loop: LeasingLoop) -> None:
    threads = threading.active_count()
    with CommandLease(client, is_renewed=False) as lease:
        assert threading.active_count() == threads
        lease.renew()
        assert loop.renewed.is_set()


def test_who_was_taken_over_from_is_told(client: Any, other: Any, loop: LeasingLoop) -> None:
    with CommandLease(client, "first") as lease:
        with CommandLease(other, "second", takes_over=True):
            with pytest.raises(CommandRefusedError) as refusal:
                client.ask(Enable())
            assert refusal.value.code == "lease-lost"
            assert "second" in refusal.value.message
            assert refusal.value.held_by is not None
            assert refusal.value.held_by.name == loop.holder
        # Nobody has it now, and still it is not silently ours again.
        with pytest.raises(CommandRefusedError):
            lease.renew()


def test_it_cannot_be_had(client: Any, other: Any) -> None:
    with CommandLease(client, "first"):
        with pytest.raises(CommandRefusedError) as refusal, CommandLease(other, "second"):
            pass
        assert refusal.value.code == "held"
        assert other.lease == ""
        client.ask(Enable())


def test_one_lease_per_client(client: Any) -> None:
    with CommandLease(client), pytest.raises(ConfigError), CommandLease(client):
        pass


def test_it_is_given_back_when_the_script_fails(client: Any, loop: LeasingLoop) -> None:
    with pytest.raises(ZeroDivisionError), CommandLease(client):
        raise ZeroDivisionError

    assert loop.holder == ""


@pytest.mark.parametrize("what", ["sweep", "x" * 500, "a\x1b[31m\nb", "Übung"])
def test_names_are_short_and_printable(what: str) -> None:
    name = holder_name(what)

    assert name.isprintable()
    assert len(name) <= HOLDER_NAME_MAX
    assert "pid" in name
