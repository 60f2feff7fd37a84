"""Checks whether this computer is fit for a 1 kHz loop; reads the kernel's files, changes nothing.

Every path is below `root`, so that a test can show a Raspberry Pi to any machine.
"""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Iterator
from pathlib import Path

from daq.robot import Robot, Timing
from daq.system.findings import Finding, Level
from daq.system.realtime import CAP_IPC_LOCK, CAP_SYS_NICE, is_capable
from firmware_protocol.profiles import PROFILES

_FRAME_BITS_MAX = 8 * max(profile.frame_size for profile in PROFILES.values())
_RT_PRIORITY_WANTED = Timing().priority


def diagnose_host(root: Path = Path("/")) -> Iterator[Finding]:
    """Check kernel, scheduling rights, CPU clock and cores."""
    yield _kernel(root)
    yield _priority(root)
    yield _memory_lock(root)
    yield _governor(root)
    yield _isolated_cores(root)


def diagnose_pi_spi(robot: Robot, root: Path = Path("/")) -> Iterator[Finding]:
    """Yield the settings that make or break SPI on a Raspberry Pi; nothing on other computers."""
    model = _read(root / "proc/device-tree/model")
    if model is None or "Raspberry Pi" not in model:
        text = "not a Raspberry Pi: its SPI settings are not checked"
        yield Finding(Level.NOTE, "SPI driver", text)
        return
    yield _clock_pinning(root)
    yield _polling_limit(robot, root)


def _kernel(root: Path) -> Finding:
    release = _read(root / "proc/sys/kernel/osrelease") or os.uname().release
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    if _read(root / "sys/kernel/realtime") == "1":
        return Finding(Level.OK, "kernel", f"{release}, PREEMPT_RT")
    return Finding(
        Level.WARNING,
        "kernel",
        f"{release} without PREEMPT_RT: rare wake-ups come milliseconds late",
        f"install a PREEMPT_RT kernel (Debian: linux-image-rt-{machine}) to get rid of them",
    )


def _priority(root: Path) -> Finding:
    _, limit = resource.getrlimit(resource.RLIMIT_RTPRIO)
    is_unlimited = limit == resource.RLIM_INFINITY or is_capable(CAP_SYS_NICE, root)
    if is_unlimited or limit >= _RT_PRIORITY_WANTED:
        shown = "no limit" if is_unlimited else str(limit)
        return Finding(Level.OK, "real-time priority", f"allowed ({shown})")
    return Finding(
        Level.WARNING,
        "real-time priority",
        f"limit is {limit}, the loop wants {_RT_PRIORITY_WANTED}: it would run unprivileged",
        f"add `@armature - rtprio {_RT_PRIORITY_WANTED}` to /etc/security/limits.d/armature.conf "
        "and yourself to that group, or run it as a service (`armature install-service`)",
    )


def _memory_lock(root: Path) -> Finding:
    _, limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    is_unlimited = limit == resource.RLIM_INFINITY or is_capable(CAP_IPC_LOCK, root)
    if is_unlimited:
        return Finding(Level.OK, "memory lock", "allowed")
    return Finding(
        Level.WARNING,
        "memory lock",
        f"limit is {limit >> 20} MiB, the loop wants none: its pages may be swapped out under it",
        "add `@armature - memlock unlimited` to /etc/security/limits.d/armature.conf",
    )


def _governor(root: Path) -> Finding:
    files = sorted(root.glob("sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"))
    governors = sorted({_read(file) or "unreadable" for file in files})
    if not governors:
        return Finding(Level.NOTE, "CPU governor", "the kernel does not scale the clock here")
    if governors == ["performance"]:
        return Finding(Level.OK, "CPU governor", "performance")
    return Finding(
        Level.WARNING,
        "CPU governor",
        f"{', '.join(governors)}: the clock changes under the loop",
        "sudo cpupower frequency-set -g performance",
    )


def _isolated_cores(root: Path) -> Finding:
    cores = _read(root / "sys/devices/system/cpu/isolated")
    if cores:
        return Finding(Level.OK, "isolated cores", cores)
    return Finding(
        Level.WARNING,
        "isolated cores",
        "none: the loop shares its core with everything else",
        f"append isolcpus={(os.cpu_count() or 4) - 1} to the kernel's command line (on a Pi: "
        "cmdline.txt) and reboot",
    )


def _clock_pinning(root: Path) -> Finding:
    """Check that the core clock is pinned: the SPI clock follows it, and it scales with load."""
    for name in ("boot/firmware/config.txt", "boot/config.txt"):
        text = _read(root / name)
        if text is None:
            continue
        if re.search(r"^\s*(force_turbo\s*=\s*1|core_freq_min\s*=\s*500)\b", text, re.MULTILINE):
            return Finding(Level.OK, "SPI clock", f"pinned in /{name}")
        return Finding(
            Level.WARNING,
            "SPI clock",
            "not pinned: it follows the core clock, which scales with load",
            f"add core_freq_min=500 to /{name} and reboot",
        )
    return Finding(
        Level.WARNING, "SPI clock", "config.txt not found", "check that core_freq_min=500 is set"
    )


def _polling_limit(robot: Robot, root: Path) -> Finding:
    text = _read(root / "sys/module/spi_bcm2835/parameters/polling_limit_us")
    if text is None or not text.isdecimal():
        return Finding(Level.NOTE, "SPI polling", "the driver does not say its polling limit")
    slowest_hz = min(port.spi.speed_hz for port in robot.boards)
    needed_us = _FRAME_BITS_MAX / slowest_hz * 1e6
    if int(text) >= needed_us:
        return Finding(Level.OK, "SPI polling", f"limit {text} µs, a frame takes {needed_us:.0f}")
    return Finding(
        Level.WARNING,
        "SPI polling",
        f"limit {text} µs, a frame takes {needed_us:.0f} µs: transfers go the slow interrupt way",
        "append spi_bcm2835.polling_limit_us=200 to cmdline.txt and reboot",
    )


def _read(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip().strip("\0")
    except OSError:
        return None
