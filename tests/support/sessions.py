"""A session as a loop states it, for tests without a loop."""

from __future__ import annotations

from typing import Any

from daq.robot import parse_robot, robot_text
from daq.samples.batches import SCHEMA, BoardInfo, Session
from firmware_protocol.fingerprint import fingerprint
from firmware_protocol.profiles import PROFILES

START_T_NS = 5_000_000_000
START_UTC_NS = 1_700_000_000_000_000_000


def make_session(
    robot: str = "laas4", *, profile: str | None = None, framing: str = "spi", **changes: Any
) -> Session:
    """The session of a shipped robot, all of its boards of one profile if one is given."""
    text = robot_text(robot)
    if profile is not None:
        text = text.replace('profile = "arm"', f'profile = "{profile}"')
    boards = parse_robot(text, robot).boards
    values: dict[str, Any] = {
        "schema": SCHEMA,
        "session": "20231114T221320-test",
        "fingerprint": "+".join(fingerprint(PROFILES[board.profile]) for board in boards),
        "robot_text": text,
        "robot_source": robot,
        "boards": tuple(
            BoardInfo(name=b.name, profile=b.profile, framing=framing, device=b.spi.device)
            for b in boards
        ),
        "period_ns": 1_000_000,
        "start_utc_ns": START_UTC_NS,
        "start_t_ns": START_T_NS,
        "host": "testhost",
        "armature_version": "0.1.0",
        "commit": "",
        "is_virtual": True,
        "link": "mock",
    }
    return Session(**{**values, **changes})
