import dataclasses
import math

import pytest
from acceptance import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from hw_mocks.errors import MockConfigError
from hw_mocks.plants.effects import BENCH_ONLY, PRESETS, Effects, parse_effects


def test_none_switches_everything_off_and_troubles_on_whatever_an_arm_can_have():
    assert not any(dataclasses.astuple(PRESETS["none"]))
    off = {name for name, size in dataclasses.asdict(PRESETS["troubles"]).items() if not size}
    assert off == set(BENCH_ONLY) == {"end_stop_rad", "gear_slip"}
    assert len(dataclasses.fields(Effects)) == 10


def test_default_has_only_what_every_drive_has():
    on = {name for name, size in dataclasses.asdict(PRESETS["default"]).items() if size}
    assert on == {"iq_noise_a", "cogging_nm", "torque_ripple", "is_encoder_quantised"}


def test_troubles_carries_the_stated_sizes():
    troubles = PRESETS["troubles"]
    assert troubles.backlash_rad == pytest.approx(math.radians(0.2))
    assert troubles.torque_constant_drop == 0.20
    assert troubles.stribeck == 0.3


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_alone(name):
    assert parse_effects(name) == PRESETS[name]


def test_changes_to_a_preset():
    effects = parse_effects(
        "default, backlash_rad = 0.003, cogging_nm=0, is_encoder_quantised=false"
    )
    assert effects == dataclasses.replace(
        PRESETS["default"], backlash_rad=0.003, cogging_nm=0.0, is_encoder_quantised=False
    )


def test_changes_alone_change_the_default():
    assert parse_effects("stribeck=0.5") == dataclasses.replace(PRESETS["default"], stribeck=0.5)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("trouble", ["'trouble'", "'troubles'"]),
        ("", ["''", "none, default, troubles"]),
        ("default,backlash=0.003", ["'backlash'", "'backlash_rad'"]),
        ("default,stribeck", ["stribeck=VALUE"]),
        ("none,stribeck=much", ["stribeck = 'much'"]),
        ("none,is_encoder_quantised=2", ["is_encoder_quantised = '2'"]),
        ("none,torque_constant_drop=1.5", ["torque_constant_drop = 1.5", "0.9"]),
        ("none,cogging_nm=-1e-3", ["cogging_nm = -0.001", "0.1"]),
        ("none,cogging_nm=nan", ["cogging_nm = nan", "0.1"]),
        ("none,joint_resonance_hz=inf", ["joint_resonance_hz = inf", "200"]),
        ("none,end_stop_rad=-1", ["end_stop_rad = -1", "100"]),
        ("none,gear_slip=0.95", ["gear_slip = 0.95", "0.9"]),
        ("none,slip=0.1", ["'slip'", "'gear_slip'"]),
    ],
)
def test_mistakes_are_explained(text, parts):
    with pytest.raises(MockConfigError) as refused:
        parse_effects(text)
    assert repr(text) in refused.value.source
    (problem,) = refused.value.problems
    assert all(part in problem for part in parts)


def test_all_mistakes_are_reported_at_once():
    with pytest.raises(MockConfigError) as caught:
        parse_effects("defualt,backlsh_rad=1,stribeck=x,cogging_nm=7")
    assert len(caught.value.problems) == 4


@given(st.text(max_size=60))
@settings(max_examples=examples(40))
def test_any_text_gives_effects_or_a_config_error(text):
    try:
        assert isinstance(parse_effects(text), Effects)
    except MockConfigError as error:
        assert error.problems
