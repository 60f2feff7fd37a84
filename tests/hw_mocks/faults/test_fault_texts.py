"""How faults are written, and what a mistake in one is answered with."""

from __future__ import annotations

import math

import pytest

from hw_mocks.errors import MockConfigError
from hw_mocks.faults.script import FaultKind, ScriptedFault, parse_fault


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("flip:rate=0.01", ScriptedFault(kind=FaultKind.FLIP, rate=0.01)),
        ("drop:at=2.5,board=1", ScriptedFault(kind=FaultKind.DROP, at_s=2.5, board=1)),
        ("repeat: rate = 1 , board = 0", ScriptedFault(kind=FaultKind.REPEAT, rate=1.0, board=0)),
        (
            "flip:at=0,direction=reply",
            ScriptedFault(kind=FaultKind.FLIP, at_s=0.0, direction="reply"),
        ),
        ("stuck-low:at=2,for=0.5", ScriptedFault(kind=FaultKind.STUCK_LOW, at_s=2.0, for_s=0.5)),
        ("board-error:at=1,code=3", ScriptedFault(kind=FaultKind.BOARD_ERROR, at_s=1.0, code=3)),
        ("board-error:at=1", ScriptedFault(kind=FaultKind.BOARD_ERROR, at_s=1.0, code=7)),
        ("skip:rate=0.03", ScriptedFault(kind=FaultKind.SKIP, rate=0.03)),
        # Those that last have a duration of their own.
        ("stuck-high:at=1", ScriptedFault(kind=FaultKind.STUCK_HIGH, at_s=1.0, for_s=0.1)),
        ("brown-out:at=1", ScriptedFault(kind=FaultKind.BROWN_OUT, at_s=1.0, for_s=0.05)),
        ("encoder-gap:at=1", ScriptedFault(kind=FaultKind.ENCODER_GAP, at_s=1.0, for_s=0.05)),
        (
            "encoder-gap:at=1,for=0.2,board=1",
            ScriptedFault(kind=FaultKind.ENCODER_GAP, at_s=1.0, for_s=0.2, board=1),
        ),
        ("vanish:at=1", ScriptedFault(kind=FaultKind.VANISH, at_s=1.0, for_s=math.inf)),
        ("unplug:at=1,", ScriptedFault(kind=FaultKind.UNPLUG, at_s=1.0, for_s=math.inf)),
    ],
)
def test_what_may_be_written(text: str, expected: ScriptedFault) -> None:
    assert parse_fault(text) == expected


@pytest.mark.parametrize("kind", list(FaultKind))
def test_every_kind_can_be_asked_for(kind: FaultKind) -> None:
    assert parse_fault(f"{kind.value}:at=1").kind is kind


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("", ["kind ''", "at=SECONDS"]),
        ("flp:rate=0.1", ["'flp'|'flip'"]),
        ("nonsense:at=1", ["'nonsense'|flip, drop"]),
        ("flip", ["rate=PROBABILITY|at=SECONDS"]),
        ("flip:rate=0.1,at=1", ["rate=PROBABILITY|at=SECONDS"]),
        ("stuck-low", ["stuck-low:at=SECONDS"]),
        ("stuck-low:rate=0.1", ["rate=0.1: |stuck-low", "stuck-low:at=SECONDS"]),
        ("encoder-gap:rate=0.1", ["rate=0.1: |encoder-gap", "encoder-gap:at=SECONDS"]),
        ("encoder-gap:at=1,code=3", ["code=3: |encoder-gap"]),
        ("encodr-gap:at=1", ["'encodr-gap'|'encoder-gap'"]),
        ("flip:rate=0.1,for=3", ["for=3: |flip"]),
        ("flip:rate=0.1,code=3", ["code=3: |flip"]),
        ("drop:rate=0.1,direction=reply", ["direction=reply: |drop"]),
        ("flip:rate=0.1,direction=up", ["direction=up: |command|reply"]),
        ("skip:rate=0.1,board=1", ["board=1: |skip"]),
        ("skip:rate=0.1,for=1", ["for=1: |skip"]),
        ("skip", ["rate=PROBABILITY|at=SECONDS"]),
        ("flip:rate", ["'rate'|rate=VALUE"]),
        ("flip:rate=", ["rate=: "]),
        ("flip:rate=often", ["rate=often: "]),
        ("flip:rate=1.5", ["rate=1.5: "]),
        ("flip:rate=nan", ["rate=nan: "]),
        ("drop:at=-1", ["at=-1: |1e+06"]),
        ("drop:at=inf", ["at=inf: |1e+06"]),
        ("drop:at=1,board=0.5", ["board=0.5: "]),
        ("drop:at=1,board=64", ["board=64: |63"]),
        ("board-error:at=1,code=16", ["code=16: |15"]),
        ("board-error:at=1,code=-1", ["code=-1: |15"]),
        ("drop:at=1,at=2", ["at "]),
        ("drop:at=1,colour=red", ["'colour'|rate, at, for, board"]),
        # All at once.
        (
            "flop:colour=red,rate=2,board=x",
            ["kind 'flop'", "key 'colour'", "rate=2: ", "board=x: "],
        ),
    ],
)
def test_every_mistake_is_listed(text: str, problems: list[str]) -> None:
    with pytest.raises(MockConfigError) as caught:
        parse_fault(text)
    found = caught.value.problems
    assert len(found) == len(problems)
    for message, expected in zip(found, problems, strict=True):
        assert all(part in message for part in expected.split("|"))
    assert repr(text) in str(caught.value)
