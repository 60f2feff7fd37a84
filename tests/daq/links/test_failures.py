"""One exception per way a device can fail, each with the device and what to do."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import msgspec
import pytest

from daq.boards.wire_limits import board_remarks, wire_problems
from daq.errors import (
    ConfigError,
    DaqError,
    DeviceBusyError,
    DeviceGoneError,
    DeviceIoError,
    DeviceMissingError,
    DevicePermissionError,
    TransportError,
)
from daq.links.address import LinkAddress, LinkKind, parse_link
from daq.links.failures import transport_error
from daq.links.serial import SerialLink
from daq.links.spi import SpiLink
from daq.robot import Control, Gains, SpiPort, load_robot
from firmware_protocol.codec import reply_codec
from firmware_protocol.fields import Framing
from firmware_protocol.profiles import ARM


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (errno.ENOENT, DeviceMissingError),
        (errno.EACCES, DevicePermissionError),
        (errno.EPERM, DevicePermissionError),
        (errno.EBUSY, DeviceBusyError),
        (errno.EIO, DeviceIoError),
        (errno.ENODEV, DeviceGoneError),
        (errno.ENXIO, DeviceGoneError),
    ],
)
def test_each_failure_has_its_own_exception(code: int, expected: type[TransportError]) -> None:
    error = transport_error("/dev/spidev0.0", OSError(code, os.strerror(code)))
    assert type(error) is expected
    assert isinstance(error, DaqError)
    assert isinstance(error, OSError)
    assert error.device == "/dev/spidev0.0"
    assert str(error).startswith("/dev/spidev0.0: ")


def test_a_named_failure_stays_what_it_is() -> None:
    error = DeviceGoneError("/dev/ttyUSB0", "gone")
    assert transport_error("/dev/other", error) is error


def test_a_missing_spi_device_says_how_to_get_one() -> None:
    with pytest.raises(DeviceMissingError, match="dtparam=spi=on") as caught:
        SpiLink(SpiPort(device="/dev/spidev9.9"))
    assert caught.value.device == "/dev/spidev9.9"


def test_a_missing_spidev_package_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "spidev", None)
    monkeypatch.setattr("daq.links.spi.DeviceLock", lambda device: _Lock())
    with pytest.raises(TransportError, match=r"\.\[robot\]") as caught:
        SpiLink(SpiPort(device="/dev/spidev0.0"))
    assert caught.value.code == "package-missing"


class _Lock:
    def release(self) -> None:
        pass


def test_a_missing_serial_port_is_named(tmp_path: Path) -> None:
    with pytest.raises(DeviceMissingError) as caught:
        _serial(str(tmp_path / "ttyUSB9"))
    assert caught.value.device == str(tmp_path / "ttyUSB9")


def test_a_file_is_no_serial_port(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(DeviceIoError):
        _serial(str(path))


def _serial(device: str) -> SerialLink:
    return SerialLink(device, baud=115200, reply=reply_codec(ARM, Framing.RS485))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mock", LinkAddress(LinkKind.MOCK)),
        ("spi", LinkAddress(LinkKind.SPI)),
        ("spy+spi", LinkAddress(LinkKind.SPI, is_traced=True)),
        ("serial:///dev/ttyUSB0", LinkAddress(LinkKind.SERIAL, "/dev/ttyUSB0")),
        (
            "spy+serial:///dev/ttyUSB0?baud=2000000",
            LinkAddress(LinkKind.SERIAL, "/dev/ttyUSB0", 2_000_000, is_traced=True),
        ),
    ],
)
def test_addresses(text: str, expected: LinkAddress) -> None:
    assert parse_link(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "can",
        "spi0",
        "serial:",
        "serial:/",
        "serial://ttyUSB0",
        "serial:///dev/x?baud=fast",
        "serial:///dev/x?baud=1",
        "serial:///dev/x?speed=9600",
        "spy+",
        "spy+spy+spi",
        "MOCK",
        "serial://[::1",
        "serial:///dev/x?baud=٣٣٣٣٣٣",
    ],
)
def test_bad_addresses_are_explained(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_link(text)
    assert (caught.value.source, caught.value.code) == (f"--link {text}", "unknown-link")


def test_the_shipped_robots_fit_their_wire() -> None:
    assert wire_problems(load_robot("laas4")) == []
    assert wire_problems(load_robot("bench1")) == []


def test_limits_beyond_the_wire_are_all_reported() -> None:
    robot = load_robot("laas4")
    joints = [
        msgspec.structs.replace(
            joint,
            limits=msgspec.structs.replace(
                joint.limits, current_max_a=40.0, velocity_max_rad_s=100.0
            ),
        )
        for joint in robot.joints
    ]
    problems = wire_problems(msgspec.structs.replace(robot, joints=tuple(joints)))
    assert [problem.partition(":")[0] for problem in problems] == [
        f"joints[{number}].limits.{limit}"
        for number in range(4)
        for limit in ("current_max_a", "velocity_max_rad_s")
    ]
    assert "40 A" in problems[0] and "31.875 A" in problems[0]
    weak = msgspec.structs.replace(
        robot.joints[0],
        limits=msgspec.structs.replace(robot.joints[0].limits, current_max_a=0.1),
        control=Control(position=Gains(kp_a_per_rad=9.0, kd_a_s_per_rad=0.01)),
    )
    first, second = wire_problems(msgspec.structs.replace(robot, joints=(weak, *robot.joints[1:])))
    assert first.startswith("joints[0].limits.current_max_a: 0.1 A, ") and "0.125 A" in first
    assert second.startswith("joints[0].control.position.kp_a_per_rad: 9, ")
    too_often = wire_problems(robot, profile="udriver2", rate_hz=2000)
    assert any("0.7 ms" in problem for problem in too_often)
    assert wire_problems(robot, profile="nonsense")[0].startswith("boards[0].profile")


def test_a_board_that_drives_less_than_the_limit_is_remarked_upon() -> None:
    remarks = board_remarks(load_robot("laas4"), profile="uomodri")
    assert [remark.partition(".")[0] for remark in remarks] == [f"joints[{n}]" for n in (0, 1, 3)]
    assert all(value in remarks[0] for value in ("20 A", "uomodri", "10 A"))
    assert board_remarks(load_robot("laas4")) == []
