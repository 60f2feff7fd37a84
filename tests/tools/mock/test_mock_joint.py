"""`--joint`: one joint of a robot alone on the bench, and what only such a joint can have."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import serial

from daq.robot.load import load_robot
from firmware_protocol.codec import command_codec, reply_codec
from firmware_protocol.fields import Framing
from firmware_protocol.profiles import PROFILES
from hw_mocks.plants.bench_plant import BenchPlant
from hw_mocks.plants.load_arm import MockLoadArm
from tools.running.mock_options import (
    add_board_options,
    add_joint_option,
    add_mock_robot_options,
    make_mock,
)
from tools.running.options import MockOptions

JOINTS = [joint.name for joint in load_robot("laas4").joints]

Armature = Callable[..., Any]


def options(*words: str, has_joint: bool = True) -> MockOptions:
    parser = argparse.ArgumentParser()
    parser.add_argument("--robot", default="laas4")
    add_mock_robot_options(parser)
    add_board_options(parser)
    if has_joint:
        add_joint_option(parser)
    arguments = parser.parse_args(words)
    return MockOptions.from_namespace(arguments, joint=arguments.joint if has_joint else None)


@pytest.mark.parametrize("name", JOINTS)
def test_the_truth_is_of_that_joint_alone(armature: Armature, name: str) -> None:
    words = ("mock", "truth", "--robot", "laas4", "--joint", name, "--spread", "0", "--json")
    truth = armature(*words).json

    (joint,) = truth["joints"]
    drive = next(joint for joint in load_robot("laas4").joints if joint.name == name).drive
    assert (joint["name"], joint["link"]) == (name, None)
    assert joint["rotor_inertia_kg_m2"] == drive.rotor_inertia_kg_m2
    assert joint["coulomb_joint_nm"] == drive.friction.coulomb_joint_nm
    assert joint["load_inertia_kg_m2"] > 0.0


def test_a_joint_that_does_not_exist(armature: Armature) -> None:
    result = armature("mock", "truth", "--robot", "laas4", "--joint", "joint9")

    assert (result.exit_code, result.out) == (2, "")
    assert "laas4" in result.err and "joint9" in result.err


@pytest.mark.parametrize("action", ["exec", "serial", "truth"])
def test_every_action_has_it(armature: Armature, action: str) -> None:
    assert "--joint NAME" in armature("mock", action, "--help").out


@pytest.mark.parametrize("name", JOINTS)
def test_it_turns_on_the_bench(name: str) -> None:
    mock, _ = make_mock(options("--joint", name))

    assert isinstance(mock.plant, BenchPlant)
    (board,), (joint,) = mock.robot.boards, mock.robot.joints
    assert joint.drive.board == board.name
    # At the same plug as in the arm.
    output = next(each for each in load_robot("laas4").joints if each.name == name).drive.output
    assert mock.boards[0].outputs[output - 1].connection is not None
    assert mock.boards[0].outputs[2 - output].connection is None


def test_verbs_without_the_option_simulate_the_whole_robot() -> None:
    mock, _ = make_mock(options(has_joint=False))
    assert [joint.name for joint in mock.robot.joints] == JOINTS


def test_a_load_arm_is_passed_on() -> None:
    arm = MockLoadArm(0.5, 0.2)
    asked = replace(options("--joint", "joint2"), load_arm=arm)
    assert make_mock(asked)[0].load_arm == arm


def test_troubles_of_a_bench(armature: Armature) -> None:
    effects = ("--effects", "default,end_stop_rad=1,gear_slip=0.1")

    whole = armature("mock", "truth", "--robot", "laas4", *effects)
    assert whole.exit_code == 2
    for name in ("end_stop_rad", "gear_slip"):
        assert f"{name}: " in whole.err

    alone = armature("mock", "truth", "--robot", "laas4", "--joint", "joint1", *effects)
    assert alone.exit_code == 0
    assert "end_stop_rad=1, gear_slip=0.1" in alone.out


def test_faults_know_the_one_board_that_is_left(armature: Armature) -> None:
    fault = ("--fault", "encoder-gap:at=1,board=1")
    assert make_mock(options(*fault))[1].is_empty is False

    result = armature("mock", "serial", "--robot", "laas4", "--joint", "joint3", *fault)
    assert result.exit_code == 2
    assert repr(fault[1]) in result.err


def test_a_serial_port_needs_no_board_number(start: Callable[..., Any]) -> None:
    process = start("armature", "mock", "serial", "--robot", "laas4", "--joint", "joint4")
    port = process.stdout.readline().strip()
    assert "board elbow" in process.stderr.readline()

    command = command_codec(PROFILES["arm"], Framing.RS485)
    reply = reply_codec(PROFILES["arm"], Framing.RS485)
    with serial.Serial(port, timeout=10) as line:
        for index in (7, 8):  # the first reply of all is unreadable
            line.write(command.encode(command.make(mode=0x80, index=index)))
            frame = line.read(reply.size)
    assert reply.decode(frame).index == 7
