"""Robot files from URDFs and back: the arm moves the same, by Pinocchio and by its own parser."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pinocchio as pin
import pytest
from acceptance import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from public_data import data_folder
from refusals import refused

from daq.errors import ConfigError
from daq.robot import (
    Inertia,
    Joint,
    JointLimits,
    Link,
    Placement,
    Robot,
    Transmission,
    load_robot,
    parse_robot,
    robot_text,
)
from daq.robot.geometry import placement_pose, rpy_of
from daq.robot.rigid_body import make_model
from estimation.errors import UrdfError
from estimation.urdf import ConvertedRobot, robot_from_urdf, urdf_text

Array = npt.NDArray[np.float64]
LIMITS = JointLimits(
    position_min_rad=-3.0, position_max_rad=2.5, velocity_max_rad_s=4.0, torque_max_nm=5.0
)
QUARTER = math.pi / 2


def torque(model: pin.Model, seed: int, count: int = 10) -> Array:
    generator = np.random.default_rng(seed)
    data = model.createData()
    rows = generator.normal(size=(count, 3, model.nv))
    return np.array([pin.rnea(model, data, *row) for row in rows])


def assert_same(ours: pin.Model, theirs: pin.Model, seed: int = 0) -> None:
    assert ours.nv == theirs.nv
    expected = torque(theirs, seed)
    assert np.abs(torque(ours, seed) - expected).max() <= 1e-9 * np.abs(expected).max()


def model_of(file: ConvertedRobot) -> pin.Model:
    return make_model(parse_robot(file.text, "made.toml"))


def make_link(generator: np.random.Generator) -> Link:
    """A body of six point masses: always possible."""
    points, masses = generator.normal(scale=0.2, size=(6, 3)), generator.uniform(0.1, 1.0, 6)
    pairs = zip(masses, points, strict=True)
    inertia = sum(m * (p @ p * np.eye(3) - np.outer(p, p)) for m, p in pairs)
    places = {"xx": (0, 0), "xy": (0, 1), "yy": (1, 1), "xz": (0, 2), "yz": (1, 2), "zz": (2, 2)}
    x, y, z = (masses @ points).tolist()
    return Link(
        mass_kg=float(masses.sum()),
        first_moment_kg_m=(x, y, z),
        inertia_kg_m2=Inertia(**{key: float(inertia[at]) for key, at in places.items()}),
    )


@st.composite
def robots(draw: st.DrawFn) -> Robot:
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    angle = st.floats(-math.pi, math.pi) | st.sampled_from([0.0, QUARTER, -QUARTER, math.pi])
    joints = []
    for index in range(draw(st.integers(1, 7))):
        x, y, z = generator.normal(scale=0.3, size=3).tolist()
        gear = Transmission(gear_reduction=float(generator.uniform(1, 100)), direction=-1)
        joints.append(
            Joint(
                name=f"joint{index}",
                limits=LIMITS,
                placement=Placement(
                    xyz_m=(x, y, z), rpy_rad=(draw(angle), draw(angle), draw(angle))
                ),
                link=make_link(generator),
                transmission=draw(st.sampled_from([None, gear])),
            )
        )
    return Robot(schema=1, name="any", description="a -- b < c & d -", joints=tuple(joints))


@settings(max_examples=examples(60))
@given(robot=robots())
def test_there_and_back_and_by_pinocchios_own_parser(robot: Robot) -> None:
    text = urdf_text(robot)
    file = robot_from_urdf(text, source="any.urdf")
    assert file.warnings == ()
    assert_same(model_of(file), make_model(robot))
    assert_same(pin.buildModelFromXML(text), make_model(robot))
    again = parse_robot(file.text, "any.toml")
    assert [joint.name for joint in again.joints] == [joint.name for joint in robot.joints]
    for joint, old in zip(again.joints, robot.joints, strict=True):
        assert (joint.gear_reduction, joint.direction) == (old.gear_reduction, old.direction)
        assert joint.limits == old.limits


@given(roll=st.floats(-4, 4), yaw=st.floats(-4, 4), tilt=st.floats(-1e-6, 1e-6), sign=st.booleans())
def test_angles_near_gimbal_lock(roll: float, yaw: float, tilt: float, sign: bool) -> None:
    pitch = math.copysign(QUARTER, 1 if sign else -1) + tilt
    turn = np.array(placement_pose(Placement(xyz_m=(0, 0, 0), rpy_rad=(roll, pitch, yaw))))
    again = placement_pose(Placement(xyz_m=(0, 0, 0), rpy_rad=rpy_of(turn)))
    np.testing.assert_allclose(again, turn, atol=1e-12)


def test_the_arm_carries_its_friction_and_gears() -> None:
    robot = load_robot("laas4")
    text = urdf_text(robot)
    model = pin.buildModelFromXML(text)
    viscous = [
        j.drive.friction.viscous_motor_nm_s_per_rad * j.gear_reduction**2 for j in robot.joints
    ]
    np.testing.assert_allclose(model.damping, viscous)
    np.testing.assert_allclose(model.friction, [0.247, 0.103, 0.122, 0.103])
    assert "<mechanicalReduction>27.0</mechanicalReduction>" in text
    assert "Rotor inertia of joint1, at the motor: 3e-05 kg m2" in text
    assert_same(model_of(robot_from_urdf(text, source="laas4.urdf")), make_model(robot))


def test_what_a_urdf_has_no_place_for_is_said_at_its_top() -> None:
    text = urdf_text(load_robot("laas4"))
    head = text[: text.index("<robot")]
    assert "laas4.toml, has all of them" in head
    assert "joint1: drive inertia 0.02883 kg m2\n" in head

    made = robot_from_urdf(urdf(*ARM), source="a.urdf").text
    bare = parse_robot(made, "a.toml")
    assert "Not in this file" not in urdf_text(bare)
    terms = "drive_inertia_kg_m2 = 0.7, offset_nm = -0.25, stribeck_nm = 1.5, coulomb_nm = 2.0"
    name = f'name = "{bare.joints[1].name}"\n'
    told = parse_robot(made.replace(name, f"{name}dynamics = {{ {terms} }}\n"), "b.toml")
    text = urdf_text(told)
    head = text[: text.index("<robot")]
    assert (
        "q2: drive inertia 0.7 kg m2, offset -0.25 N m, friction beyond Coulomb's at standstill "
        "1.5 N m\n"
    ) in head
    assert "q1:" not in head
    assert pin.buildModelFromXML(text).friction.tolist() == [0.0, 2.0]


def test_friction_at_the_joint_is_what_the_gear_lets_through() -> None:
    text = robot_text("laas4").replace(
        "gear_reduction = 31.0", "gear_reduction = 31.0\ngear_efficiency = 0.5", 1
    )
    robot = parse_robot(text, "lossy.toml")
    model = pin.buildModelFromXML(urdf_text(robot))
    assert model.damping[0] == pytest.approx(0.5 * 6.45e-6 * 31.0**2)


def test_a_robot_without_links_has_no_urdf() -> None:
    with refused(UrdfError, "joints-without-link", "bench1", "joint1"):
        urdf_text(load_robot("bench1"))


# --- URDFs of others ------------------------------------------------------------------------------


def inertial(mass: float = 1.5, xyz: str = "0.1 -0.05 0.2", rpy: str = "0.3 0.2 -0.4") -> str:
    inertia = '<inertia ixx="0.02" ixy="0.001" ixz="-0.002" iyy="0.03" iyz="0.0015" izz="0.025"/>'
    return f'<inertial><origin xyz="{xyz}" rpy="{rpy}"/><mass value="{mass}"/>{inertia}</inertial>'


def link(name: str, inside: str | None = None) -> str:
    return f'<link name="{name}">{inertial() if inside is None else inside}</link>'


def joint(  # noqa: PLR0917 - as a table
    name: str, parent: str, child: str, kind: str = "revolute", axis: str = "0 0 1", more: str = ""
) -> str:
    return (
        f'<joint name="{name}" type="{kind}"><origin xyz="0.1 0.2 0.3" rpy="0.4 -0.5 0.6"/>'
        f'<parent link="{parent}"/><child link="{child}"/><axis xyz="{axis}"/>'
        f'<limit lower="-1" upper="2" velocity="3" effort="4"/>{more}</joint>'
    )


def urdf(*parts: str) -> str:
    return f'<?xml version="1.0" encoding="utf-8"?><robot name="other arm">{"".join(parts)}</robot>'


HAND = [link("palm"), link("left"), link("right"), joint("wrist", "two", "palm", "fixed")]
FINGERS = [
    joint("finger", "palm", "left", "prismatic"),
    joint("other", "palm", "right", "prismatic", more='<mimic joint="finger" multiplier="-1"/>'),
]
ARM = [link("base"), link("one"), link("two")]
ARM += [joint("q1", "base", "one", axis="0 2 0"), joint("q2", "one", "two", axis="0 0 -1")]


def test_any_axis_and_fixed_links() -> None:
    text = urdf(*ARM, link("tool"), joint("flange", "two", "tool", "fixed"))
    file = robot_from_urdf(text, source="arm.urdf")
    assert_same(model_of(file), pin.buildModelFromXML(text))
    robot = parse_robot(file.text, "arm.toml")
    assert robot.name == "other_arm"
    assert not robot.is_driven
    assert robot.estimation.terms == ("viscous", "coulomb", "drive_inertia", "offset")
    assert robot.joints[0].limits.velocity_max_rad_s == 3.0


@settings(max_examples=examples(60))
@given(axes=st.lists(st.tuples(*[st.integers(-3, 3)] * 3).filter(any), min_size=1, max_size=5))
def test_arbitrary_axes(axes: list[tuple[int, int, int]]) -> None:
    links = [link(f"l{i}") for i in range(len(axes) + 1)]
    joints = [
        joint(f"q{i}", f"l{i}", f"l{i + 1}", axis=" ".join(map(str, axis)))
        for i, axis in enumerate(axes)
    ]
    text = urdf(*links, *joints)
    assert_same(model_of(robot_from_urdf(text, source="a.urdf")), pin.buildModelFromXML(text))


def test_locked_joints_keep_their_masses() -> None:
    text = urdf(*ARM, *HAND, *FINGERS)
    file = robot_from_urdf(text, source="arm.urdf", lock={"finger": 0.03, "q1": 0.7})
    whole = pin.buildModelFromXML(text)
    names = list(whole.names)
    held = [names.index(name) for name in ("q1", "finger", "other") if name in names]
    posture = pin.neutral(whole)
    for name, value in (("q1", 0.7), ("finger", 0.03), ("other", -0.03)):
        if name in names:
            posture[whole.idx_qs[names.index(name)]] = value
    assert_same(model_of(file), pin.buildReducedModel(whole, held, posture))
    assert "finger is held at 0.03" in file.text


def test_a_tip_holds_what_lies_aside() -> None:
    text = urdf(*ARM, *HAND, *FINGERS)
    file = robot_from_urdf(text, source="arm.urdf", tip="two")
    assert file.warnings == ("held, as they do not lie on the way to two: finger at 0, other at 0",)
    locked = robot_from_urdf(text, source="arm.urdf", lock={"finger": 0.0, "other": 0.0})
    assert_same(model_of(file), model_of(locked))


def test_a_continuous_joint_has_two_turns_and_missing_limits_are_ours() -> None:
    arm = [part.replace('velocity="3" effort="4"', 'velocity="0"') for part in ARM]
    arm[3] = arm[3].replace("revolute", "continuous")
    arm[4] = arm[4].replace('lower="-1" upper="2"', "")
    file = robot_from_urdf(urdf(*arm), source="arm.urdf")
    for made in parse_robot(file.text, "arm.toml").joints:
        assert made.limits.position_max_rad == math.tau
        assert (made.limits.velocity_max_rad_s, made.limits.torque_max_nm) == (10.0, 1000.0)
    assert file.text.count("# our choice, the URDF states none") == 6
    assert file.warnings == ("joint q2: the URDF states no range; the file says -2π to 2π",)


@pytest.mark.parametrize(
    ("inside", "reason"),
    [
        ("", "has no mass"),
        (inertial(mass=0.0), "has no mass"),
        (inertial(mass=-1.0), "is not one that a rigid body can have"),
        (
            '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="3"/></inertial>',
            "is not one that a rigid body can have",
        ),
    ],
)
def test_an_impossible_link_is_left_out(inside: str, reason: str) -> None:
    parts = [link("base"), link("one"), link("two", inside), *ARM[3:]]
    file = robot_from_urdf(urdf(*parts), source="arm.urdf")
    robot = parse_robot(file.text, "arm.toml")
    assert [made.link is None for made in robot.joints] == [False, True]
    (warning,) = file.warnings
    assert "joint q2" in warning
    assert reason in warning
    assert reason in file.text


def test_names_that_a_robot_file_cannot_have() -> None:
    text = urdf(*ARM).replace('"q1"', '"arm/joint-1"').replace('"q2"', '"arm joint_1"')
    file = robot_from_urdf(text, source='a"\n\x7fb.urdf', name="mine")
    robot = parse_robot(file.text, "arm.toml")
    assert robot.name == "mine"
    assert [made.name for made in robot.joints] == ["arm_joint_1", "arm_joint_1_2"]
    assert "# arm/joint-1" in file.text
    with pytest.raises(ConfigError) as caught:
        robot_from_urdf(text, source="a.urdf", name='no "name"')
    assert any(problem.startswith("name: ") for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("text", "options", "code", "values"),
    [
        ("<robot", {}, "not-xml", ("line 1",)),
        ("<sdf/>", {}, "not-a-urdf", ("<sdf>", "<robot>")),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><robot/>", {}, "entities", ()),
        ("x" * 5_000_001, {}, "too-large", ("5000001", "5000000")),
        ("<robot/>", {}, "not-one-root", ()),
        (urdf(link("a"), link("b")), {}, "not-one-root", ("a, b",)),
        (urdf(link("a"), link("a")), {}, "same-name", ("<link>",)),
        (urdf("<link/>"), {}, "no-name", ("<link>",)),
        (urdf(link("a"), joint("j", "a", "z")), {}, "no-such-link", ("joint j", "'z'")),
        (
            urdf(link("a"), link("b"), joint("i", "a", "b"), joint("j", "a", "b")),
            {},
            "moved-twice",
            ("link b", " i ", " j"),
        ),
        (
            urdf(link("a"), link("b"), link("c"), joint("i", "b", "c"), joint("j", "c", "b")),
            {},
            "closed-loop",
            ("b, c",),
        ),
        (urdf(link("a"), link("b"), joint("j", "a", "b", "fixed")), {}, "no-joint-left", ()),
        (
            urdf(link("a"), link("b"), joint("j", "a", "b", "ball")),
            {},
            "unknown-joint-type",
            ("joint j", "'ball'"),
        ),
        (
            urdf(link("a"), link("b"), joint("j", "a", "b", axis="0 0 0")),
            {},
            "no-direction",
            ("joint j", "[0.0, 0.0, 0.0]"),
        ),
        (
            urdf(link("a"), link("b"), joint("j", "a", "b", axis="0 1")),
            {},
            "not-numbers",
            ("joint j", "xyz", "'0 1'"),
        ),
        (
            urdf(link("a", inertial(xyz="${x} 0 0"))),
            {},
            "not-numbers",
            ("link a", "inertial", "'${x}'", "xacro"),
        ),
        (urdf(link("a", inertial(mass=math.inf))), {}, "not-numbers", ("inertial", "'inf'")),
        (
            urdf(*ARM, *HAND, *FINGERS),
            {},
            "unsupported-joint",
            ("finger (prismatic)", "other (mimic)", "--tip LINK", "--lock JOINT=VALUE"),
        ),
        (
            urdf(*ARM, *HAND, joint("f1", "palm", "left"), joint("f2", "palm", "right")),
            {},
            "arm-branches",
            ("two: f1, f2", "--tip LINK"),
        ),
        (urdf(*ARM), {"tip": "hand"}, "no-such-link", ("--tip hand", "base, one, two")),
        (urdf(*ARM), {"lock": {"q3": 0.0}}, "no-such-joint", ("--lock q3", "q1, q2")),
        (urdf(*ARM), {"lock": {"q1": math.nan}}, "out-of-range", ("--lock q1=nan",)),
        (urdf(*ARM, *HAND, *FINGERS), {"lock": {"wrist": 0.0}}, "already-fixed", ("--lock wrist",)),
    ],
    ids=range(23),
)
def test_what_cannot_be_read(
    text: str, options: dict[str, object], code: str, values: tuple[str, ...]
) -> None:
    with refused(UrdfError, code, "a.urdf", *values):
        robot_from_urdf(text, source="a.urdf", **options)  # type: ignore[arg-type]


@given(text=st.text(max_size=40))
def test_any_text_is_refused_in_words(text: str) -> None:
    with pytest.raises(UrdfError):
        robot_from_urdf(text, source="a.urdf")


def test_a_published_arm() -> None:
    path = data_folder("tx40_figaroh") / "tx40_mdh_modified.urdf"
    text = path.read_text()
    file = robot_from_urdf(text, source=path.name)
    # Its last link has no inertia about its axis, to the three digits that are printed.
    assert len(file.warnings) == 1
    assert "joint_6" in file.warnings[0]
    theirs = pin.buildModelFromXML(text)
    theirs.inertias[theirs.njoints - 1] = pin.Inertia.Zero()
    assert_same(model_of(file), theirs)
