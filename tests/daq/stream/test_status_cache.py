"""A status of a moment ago, for those who ask again."""

from __future__ import annotations

import json

from daq.stream.gateway.status_cache import FRESH_S, StatusCache
from daq.stream.messages import Enable, RecorderReport, Report, Status

ANSWER = b'{"id":3,"ok":true,"result":{"state":"idle"}}'


class Rig:
    """A cache that holds a status, with a clock of its own."""

    def __init__(self, answer: bytes = ANSWER) -> None:
        self.now_s = 10.0
        self.cache = StatusCache(lambda: self.now_s)
        assert self.cache.answer(Status()) is None
        self.cache.note(Status(id=3), answer)


def test_it_is_given_again_with_the_right_number() -> None:
    answer = Rig().cache.answer(Status(id=8))
    assert json.loads(answer or b"") == {"id": 8, "ok": True, "result": {"state": "idle"}}


def test_for_nothing_else_and_not_for_long() -> None:
    rig = Rig()
    assert rig.cache.answer(Enable()) is None
    rig.now_s += FRESH_S + 0.001
    assert rig.cache.answer(Status()) is None


def test_a_command_makes_it_old() -> None:
    rig = Rig()
    rig.cache.forget(Report(report=RecorderReport(state="idle")))
    rig.cache.forget(Status())
    assert rig.cache.answer(Status()) is not None
    rig.cache.forget(Enable())
    assert rig.cache.answer(Status()) is None


def test_other_answers_are_not_kept() -> None:
    rig = Rig(b'{"id":3,"ok":false,"error":{"code":"not-now","message":"no"}}')
    assert rig.cache.answer(Status()) is None
    rig.cache.note(Enable(), ANSWER)
    assert rig.cache.answer(Status()) is None
