"""The fingerprint: pinned, because recordings and streams carry it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from firmware_protocol.fields import I16, U16, FrameLayout
from firmware_protocol.fingerprint import fingerprint
from firmware_protocol.profile import Profile
from firmware_protocol.profiles import ARM, PROFILES, UDRIVER2


def with_field(profile: Profile, name: str, /, **changes: Any) -> Profile:
    """The profile with one field of its reply changed."""
    fields = tuple(
        replace(field, **changes) if field.name == name else field for field in profile.reply.fields
    )
    return replace(profile, reply=replace(profile.reply, fields=fields))


def test_pinned() -> None:
    """A change here is a change of the wire: old recordings and other computers do not follow."""
    assert {name: fingerprint(profile) for name, profile in PROFILES.items()} == {
        "arm": "90837827b65e4ec2",
        "uomodri": "4936f353ed77998e",
        "udriver2": "c7464c4a245cb049",
    }


def test_different_for_every_profile() -> None:
    assert len({fingerprint(profile) for profile in PROFILES.values()}) == len(PROFILES)


def test_prose_does_not_change_it() -> None:
    told_otherwise = with_field(ARM, "iq_a", summary="Current, in other words.", zero_means="none")
    told_otherwise = replace(told_otherwise, name="arm_b", summary="another summary", faults={})
    assert fingerprint(told_otherwise) == fingerprint(ARM)


@pytest.mark.parametrize(
    "changes",
    [
        {"lsb_exponent": -11},
        {"wire": U16},
        {"name": "current_a"},
        {"unit": ARM.reply.fields[2].unit},
        {"offset": 1.0},
        {"absent_raw": -0x8000},
        {"is_motor_2_first": True},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_is_on_the_wire_changes_it(changes: dict[str, Any]) -> None:
    assert ARM.reply.fields[4].name == "iq_a"
    assert ARM.reply.fields[4].wire is I16
    assert fingerprint(with_field(ARM, "iq_a", **changes)) != fingerprint(ARM)


@pytest.mark.parametrize("changes", [{"protocol_version": 2}, {"are_crc_halves_swapped": False}])
def test_version_and_checksum_change_it(changes: dict[str, Any]) -> None:
    reply: FrameLayout = replace(ARM.reply, **changes)
    assert fingerprint(replace(ARM, reply=reply)) != fingerprint(ARM)


def test_the_order_of_fields_changes_it() -> None:
    first, second, *rest = UDRIVER2.reply.fields
    reply = replace(UDRIVER2.reply, fields=(second, first, *rest))
    assert fingerprint(replace(UDRIVER2, reply=reply)) != fingerprint(UDRIVER2)
