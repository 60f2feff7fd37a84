"""Identified links and rotors in a robot file: other numbers, the same file."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec
import pytest
from acceptance import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from identify_recordings import text_without_links

from daq.errors import ConfigError
from daq.robot import Inertia, JointDynamics, Link, Robot, load_robot, parse_robot, robot_text
from daq.robot.editing.edit import with_links
from hw_mocks.plants.truth import draw_truth

ARM_TEXT = robot_text("laas4")
ARM = load_robot("laas4")
NUMBERS = re.compile(r"mass_kg|first_moment|inertia_kg_m2|rotor_inertia")
FORMS = {
    "as it is": (r"\Z", ""),
    "table": (
        r"(inertia_kg_m2) = \{ (.*) \}\n((?:.+\n)*)",
        lambda m: f"{m[3]}\n[joints.link.{m[1]}] # I\n" + m[2].replace(", ", "\n") + "\n",
    ),
    "dotted": (
        r"inertia_kg_m2 = \{ (.*) \}\n",
        lambda m: "".join(f"  inertia_kg_m2.{part} # I\n" for part in m[1].split(", ")),
    ),
}


def drawn(seed: int, robot: Robot = ARM, spread: float = 0.15) -> dict[str, Link]:
    truth = draw_truth(robot, seed=seed, spread=spread)
    return {joint.name: joint.link for joint in truth.joints if joint.link is not None}


def expected(robot: Robot, links: Mapping[str, Link], rotors: Mapping[str, float]) -> Robot:
    joints = []
    for joint in robot.joints:
        drive = joint.drive
        if joint.name in rotors:
            drive = msgspec.structs.replace(drive, rotor_inertia_kg_m2=rotors[joint.name])
        link = links.get(joint.name, joint.link)
        joints.append(msgspec.structs.replace(joint, link=link, drive=drive))
    return msgspec.structs.replace(robot, joints=tuple(joints))


def comments(text: str) -> list[str]:
    return re.findall("#.*", text)


def without_numbers(text: str) -> list[str]:
    return [line for line in text.splitlines(True) if not NUMBERS.search(line)]


def link_of(joint: int = 3, **changes: object) -> Link:
    link = ARM.joints[joint].link
    assert link is not None
    return msgspec.structs.replace(link, **changes)


@settings(max_examples=examples(25))
@given(
    form=st.sampled_from(list(FORMS)),
    newline=st.sampled_from(["\n", "\r\n"]),
    seed=st.integers(0, 1000),
    names=st.sets(st.sampled_from([joint.name for joint in ARM.joints])),
    rotors=st.dictionaries(
        st.sampled_from([joint.name for joint in ARM.joints]), st.floats(1e-9, 1e-3)
    ),
)
def test_links_and_rotors_change_and_all_else_stays(
    form: str, newline: str, seed: int, names: set[str], rotors: dict[str, float]
) -> None:
    text = re.sub(*FORMS[form], ARM_TEXT).replace("\n", newline)
    old = parse_robot(text, "old")
    links = {name: link for name, link in drawn(seed).items() if name in names}

    new = with_links(text, links, rotors)

    assert parse_robot(new, "new") == expected(old, links, rotors)
    pairs = zip(comments(new.replace("\r", "")), comments(text.replace("\r", "")), strict=True)
    assert {pair for pair in pairs if pair[0] != pair[1]} <= {("# identified", "# I")}
    assert new.count("\n") == new.count(newline)
    if form == "as it is":
        assert without_numbers(new) == without_numbers(text)


SHORT = "[joints.dynamics]\nviscous_nm_s_per_rad = 0.1 # bench\noffset_nm = 0.2 # bench\n\n"


@pytest.mark.parametrize(
    ("form", "found"),
    [
        ("dynamics = { viscous_nm_s_per_rad = 0.1 } # the URDF's\n", ["# identified"]),
        ("dynamics.viscous_nm_s_per_rad = 0.1 # the URDF's\n", ["# identified"]),
        ("dynamics.viscous_nm_s_per_rad = 0.5 # of old\n", ["# of old"]),
        ("# of all\ndynamics = { viscous_nm_s_per_rad = 0.1 }\n", ["# of all"]),
    ],
)
def test_a_comment_beside_a_number_that_is_identified_is_stale(form: str, found: list[str]) -> None:
    text = text_without_links().replace('kind = "axial"\n', f'kind = "axial"\n{form}', 1)
    start = text.index("[[joints]]")
    stated = JointDynamics(viscous_nm_s_per_rad=0.5, offset_nm=0.3)

    new = with_links(text, {}, {}, dynamics={"joint1": stated})

    assert parse_robot(new, "new").joints[0].dynamics == stated
    assert new[:start] == text[:start]
    joint = new[start:].split("[[joints]]")[1]
    assert comments(joint.split("[joints.")[0]) == found


def test_only_numbers_that_change_lose_their_comment() -> None:
    text = text_without_links().replace("[joints.limits]\n", f"{SHORT}[joints.limits]\n", 1)
    stated = JointDynamics(viscous_nm_s_per_rad=0.5)
    new = with_links(text, {}, {}, dynamics={"joint1": stated})
    assert "viscous_nm_s_per_rad = 0.5 # identified\noffset_nm = 0.2 # bench\n" in new


def test_what_is_the_same_changes_nothing() -> None:
    links = {joint.name: joint.link for joint in ARM.joints if joint.link is not None}
    rotors = {joint.name: joint.drive.rotor_inertia_kg_m2 for joint in ARM.joints}
    assert with_links(ARM_TEXT, links, rotors) == with_links(ARM_TEXT, {}, {}) == ARM_TEXT


def test_shape_changes_as_well_if_it_is_another() -> None:
    link = link_of(capsule_radius_m=0.05, tip_m=(0.2, 0.0, 0.01))
    assert parse_robot(with_links(ARM_TEXT, {"joint4": link}, {}), "new").joints[3].link == link
    bare = link_of(tip_m=None)
    assert parse_robot(with_links(ARM_TEXT, {"joint4": bare}, {}), "new").joints[3].link == bare


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_an_arm_without_links_gets_them(newline: str) -> None:
    text = text_without_links().replace("\n", newline)
    assert all(joint.link is None for joint in parse_robot(text, "old").joints)
    links = drawn(1)

    new = with_links(text, links, {"joint1": 1e-5})  # without a drive there is no place for a rotor

    assert {joint.name: joint.link for joint in parse_robot(new, "new").joints} == links
    assert comments(new) == comments(text)
    assert new.count("\n") == new.count(newline)


def test_the_rotor_of_a_transmission_is_written_there() -> None:
    text = text_without_links().replace(
        "[joints.limits]",
        "[joints.transmission]\ngear_reduction = 100.0 # its gear\n\n[joints.limits]",
        1,
    )
    new = parse_robot(with_links(text, {}, {"joint1": 2e-5}), "new")
    transmission = new.joints[0].transmission
    assert transmission is not None
    assert (transmission.gear_reduction, transmission.rotor_inertia_kg_m2) == (100.0, 2e-5)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"mass_kg": 0.4}, r"joints\[3\]\.bounds\.mass_max_kg: 0\.3225, .* 0\.4$"),
        (
            {"mass_kg": 0.05, "first_moment_kg_m": (0.0, 0.0, 0.0)},
            r"joints\[3\]\.bounds\.mass_min_kg: 0\.0516, .* 0\.05$",
        ),
        ({"mass_kg": -0.1}, r"joints\[3\]\.link\.mass_kg: -0\.1, "),
        ({"mass_kg": float("nan")}, r"joints\[3\]\.link\.mass_kg: nan, "),
        (
            {"inertia_kg_m2": Inertia(xx=1e-3, xy=0.0, yy=1e-3, xz=0.0, yz=0.0, zz=1e-2)},
            r"joints\[3\]\.link: mass .* zz 0\.01",
        ),
        ({"first_moment_kg_m": (0.1, 0.0, 0.0)}, r"joints\[3\]\.link: mass "),
    ],
)
def test_links_that_break_bounds_or_are_not_physically_consistent_are_refused(
    changes: dict[str, object], problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        with_links(ARM_TEXT, {"joint4": link_of(**changes)}, {}, source="mine")
    assert caught.value.source == "mine"
    assert re.match(problem, caught.value.problems[0])


def test_the_mass_of_the_whole_arm_is_bounded_too() -> None:
    heavy = {
        "joint2": link_of(1, mass_kg=1.3, first_moment_kg_m=(0.1, 0.0, 0.0)),
        "joint3": link_of(2, mass_kg=1.3, first_moment_kg_m=(0.0, 0.0, 0.1)),
    }
    with pytest.raises(ConfigError, match=r"estimation\.total_mass_max_kg: 2\.3"):
        with_links(ARM_TEXT, heavy, {})


def test_impossible_rotors_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"rotor_inertia_kg_m2: -1\.0"):
        with_links(ARM_TEXT, {}, {"joint1": -1.0})


@pytest.mark.parametrize(("links", "rotors"), [({"join4": link_of()}, {}), ({}, {"join4": 1e-5})])
def test_an_unknown_joint_is_named(links: dict[str, Link], rotors: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=r'"join4".* joint4\?') as caught:
        with_links(ARM_TEXT, links, rotors)
    assert caught.value.code == "no-such-joint"
