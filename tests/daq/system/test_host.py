from __future__ import annotations

import resource
from pathlib import Path

import pytest

from daq.robot.load import load_robot
from daq.system.findings import Level
from daq.system.host import diagnose_host, diagnose_pi_spi

GIB = 1 << 30


@pytest.fixture
def pi(tmp_path: Path) -> Path:
    """A Raspberry Pi with everything as it should be."""
    write(tmp_path, "proc/device-tree/model", "Raspberry Pi 4 Model B Rev 1.4\0")
    write(tmp_path, "proc/sys/kernel/osrelease", "6.6.31-rt\n")
    write(tmp_path, "proc/self/status", "Name:\tpython\nCapEff:\t0000000000000000\n")
    write(tmp_path, "sys/kernel/realtime", "1\n")
    for core in range(4):
        folder = f"sys/devices/system/cpu/cpu{core}/cpufreq"
        write(tmp_path, f"{folder}/scaling_governor", "performance\n")
    write(tmp_path, "sys/devices/system/cpu/isolated", "3\n")
    write(tmp_path, "boot/firmware/config.txt", "dtparam=spi=on\ncore_freq_min=500\n")
    write(tmp_path, "sys/module/spi_bcm2835/parameters/polling_limit_us", "200\n")
    return tmp_path


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def limits(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (0, limit))


def levels(root: Path) -> dict[str, Level]:
    findings = [*diagnose_host(root), *diagnose_pi_spi(load_robot("laas4"), root)]
    for finding in findings:
        assert bool(finding.fix) == (finding.level in (Level.WARNING, Level.PROBLEM))
    return {finding.subject: finding.level for finding in findings}


def test_a_pi_as_it_should_be(pi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits(monkeypatch, resource.RLIM_INFINITY)

    assert set(levels(pi).values()) == {Level.OK}


@pytest.mark.parametrize(
    ("name", "text", "subject"),
    [
        ("sys/kernel/realtime", "0", "kernel"),
        ("sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "ondemand", "CPU governor"),
        ("sys/devices/system/cpu/isolated", "\n", "isolated cores"),
        ("boot/firmware/config.txt", "dtparam=spi=on\n", "SPI clock"),
        ("boot/firmware/config.txt", "#core_freq_min=500\nforce_turbo=0\n", "SPI clock"),
        ("boot/firmware/config.txt", "core_freq_min=5000\n", "SPI clock"),
        ("sys/module/spi_bcm2835/parameters/polling_limit_us", "30", "SPI polling"),
    ],
)
def test_one_thing_wrong(
    pi: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, subject: str
) -> None:
    limits(monkeypatch, resource.RLIM_INFINITY)
    write(pi, name, text)

    found = levels(pi)

    assert [key for key, level in found.items() if level is not Level.OK] == [subject]
    assert found[subject] is Level.WARNING


def test_other_places_and_ways_to_pin_the_clock(pi: Path) -> None:
    (pi / "boot/firmware/config.txt").unlink()
    assert levels(pi)["SPI clock"] is Level.WARNING

    write(pi, "boot/config.txt", "[all]\n  force_turbo = 1\n")
    assert levels(pi)["SPI clock"] is Level.OK


@pytest.mark.parametrize("text", [None, "", "many"])
def test_a_driver_without_polling_limit(pi: Path, text: str | None) -> None:
    name = "sys/module/spi_bcm2835/parameters/polling_limit_us"
    if text is None:
        (pi / name).unlink()
    else:
        write(pi, name, text)

    assert levels(pi)["SPI polling"] is Level.NOTE


@pytest.mark.parametrize(
    ("limit", "capabilities", "expected"),
    [
        (0, "0", (Level.WARNING, Level.WARNING)),
        (79, "0", (Level.WARNING, Level.WARNING)),
        (80, "0", (Level.OK, Level.WARNING)),
        (GIB, "0", (Level.OK, Level.WARNING)),  # locked up to a limit, a later allocation fails
        (resource.RLIM_INFINITY, "0", (Level.OK, Level.OK)),
        (0, "000001ffffffffff", (Level.OK, Level.OK)),
        (0, "00000000a80425fb", (Level.WARNING, Level.WARNING)),  # root in a container
        (0, "0000000000800000", (Level.OK, Level.WARNING)),
    ],
)
def test_limits(
    pi: Path,
    monkeypatch: pytest.MonkeyPatch,
    limit: int,
    capabilities: str,
    expected: tuple[Level, Level],
) -> None:
    limits(monkeypatch, limit)
    write(pi, "proc/self/status", f"Name:\tpython\nCapEff:\t{capabilities}\nCapBnd:\tff\n")

    found = levels(pi)

    assert (found["real-time priority"], found["memory lock"]) == expected


def test_a_computer_that_says_nothing(tmp_path: Path) -> None:
    found = levels(tmp_path)

    assert found["CPU governor"] is Level.NOTE
    assert found["SPI driver"] is Level.NOTE
    assert "SPI clock" not in found
