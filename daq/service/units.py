"""The files that make the loop and the recorder services: units, user, device rule and limits.

Pure text: nothing is read or written here; `armature install-service` does that. The settings are
chosen such that the loop gets its real-time privileges from limits alone, without any capability.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from daq.links.address import LinkAddress, LinkKind
from daq.robot.description import Robot
from daq.service.quoting import path_word, word
from daq.system.realtime import CPU_LATENCY
from daq.system.runtime_directory import SERVICE_DIRECTORY

USER = "armature"
LOOP_UNIT, RECORD_UNIT = "armature-loop.service", "armature-record.service"
ROBOT_FILE = Path("/etc/armature/robot.toml")
RECORDINGS = Path("/var/lib/armature/recordings")
INSTALLED = (
    Path("/etc/systemd/system") / LOOP_UNIT,
    Path("/etc/systemd/system") / RECORD_UNIT,
    Path("/etc/sysusers.d/armature.conf"),
    Path("/etc/udev/rules.d/70-armature.rules"),
    Path("/etc/security/limits.d/armature.conf"),
)
"""The files of an installation, but for the robot's."""
_HIDDEN = tuple(map(Path, ("/home", "/root", "/run/user", "/tmp", "/var/tmp")))
"""What the services do not see, but for what they need of it."""
_GROUPS = {LinkKind.SPI: "spi", LinkKind.SERIAL: "dialout"}
_STATE = Path("/var/lib")
_STOP_MARGIN_S = 5
_ROTATE_S = 3600
"""A recording per hour: everything is recorded, and a file stays handy."""


@dataclass(frozen=True, slots=True)
class Service:
    """What is to be installed.

    Attributes:
        robot_argument: The loop's option for it: its name, or the path of its file.
        link_argument: The same as people type it.
        program: The words that run `armature`, the first an absolute path.
        code: Directories that the program is read from.
        bind: Addresses `tcp://HOST:PORT` that the loop listens on too.
        keys: Directory of the robot's keys, needed for those.
        plotjuggler_port: Where the loop publishes for PlotJuggler on this computer.
    """

    robot: Robot
    robot_argument: str
    link: LinkAddress
    link_argument: str
    program: tuple[str, ...]
    code: tuple[Path, ...] = ()
    recordings: Path = RECORDINGS
    bind: tuple[str, ...] = ()
    keys: Path | None = None
    plotjuggler_port: int | None = None


def service_files(service: Service) -> dict[Path, str]:
    """Return the text of each of `INSTALLED`.

    Raises:
        ConfigError: A path has characters that no unit file carries safely.
    """
    texts = (
        loop_unit(service),
        record_unit(service),
        _USERS,
        _DEVICE_RULE,
        _limits(service.robot),
    )
    return dict(zip(INSTALLED, texts, strict=True))


def loop_unit(service: Service) -> str:
    """Return the unit of the 1 kHz loop."""
    options = ["--robot", service.robot_argument, "--link", service.link_argument]
    # Nothing here may enable a motor: the service starts again by itself.
    options += ["--runtime", str(SERVICE_DIRECTORY), "--arm", "--on-fault", "stay", "--record"]
    options += ["--faults", str(service.recordings / "faults")]
    options += [part for address in service.bind for part in ("--bind", address)]
    options += ["--keys", str(service.keys)] if service.keys else []
    if service.plotjuggler_port is not None:
        options += ["--plotjuggler", str(service.plotjuggler_port)]
    timing, safety = service.robot.timing, service.robot.safety
    return f"""\
# Written by `armature install-service`.
[Unit]
Description=armature: 1 kHz loop of robot {service.robot.name}
# The recorder starts first and stops last, so it misses nothing; without it the loop runs as well.
Wants={RECORD_UNIT}
After={RECORD_UNIT}
# A board that is switched on an hour later must find its loop: try for ever.
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
ExecStart={_command(service, "loop", *options)}
User={USER}
Group={USER}
{_device_settings(service)}
# Pinged by the loop itself. Killing a loop that hangs is safe: the boards time out within 20 ms.
WatchdogSec=2s
# SIGTERM begins the safe stop, which may lower an arm for as long as the robot file allows.
KillSignal=SIGTERM
TimeoutStopSec={_STOP_MARGIN_S + safety.stop_max_s + safety.lower_max_s:g}s
TimeoutStartSec=60s
# The loop starts idle and never enables a motor by itself, so starting it again is safe, also after
# a board fault (3). A mistake in its options or robot file (2) does not mend itself.
Restart=on-failure
RestartSec=5s
RestartPreventExitStatus=2

# It takes SCHED_FIFO itself, so that its helpers do not have it; these limits allow it.
LimitRTPRIO={timing.priority}
LimitMEMLOCK=infinity
OOMScoreAdjust=-900
# Threads for linear algebra would only cost locked memory.
Environment=OPENBLAS_NUM_THREADS=1 PYTHONFAULTHANDLER=1

# Sockets and spool. The spool outlives the loop: the recorder fetches from it what it missed.
RuntimeDirectory={SERVICE_DIRECTORY.name}
RuntimeDirectoryMode=0750
RuntimeDirectoryPreserve=yes
# Who is in the group may command the robot: that takes write permission on the socket.
UMask=0007
# The locks that keep two programs off one board.
ReadWritePaths=-/run/lock
# Where a process of the loop saves a fault if there is no recorder that does.
{_recordings_setting(service.recordings)}

{_loop_network_settings(service)}
{_hardening(service, "sched_setaffinity")}
[Install]
WantedBy=multi-user.target
"""


def record_unit(service: Service) -> str:
    """Return the unit of the recorder."""
    options = ["--out", str(service.recordings), "--runtime", str(SERVICE_DIRECTORY)]
    options += ["--rotate-s", str(_ROTATE_S)]
    return f"""\
# Written by `armature install-service`.
[Unit]
Description=armature: recorder of robot {service.robot.name}
StartLimitIntervalSec=0

[Service]
# It is ready before old journals are turned into recordings, so the loop does not wait for that.
Type=notify
NotifyAccess=main
# Long: a memory card may hold up everything for seconds.
WatchdogSec=60s
TimeoutStartSec=60s
ExecStart={_command(service, "record", *options)}
User={USER}
Group={USER}
KillSignal=SIGTERM
# The recorder waits for the conversions that it has begun.
KillMode=mixed
# Time to finish a recording. What is cut off is finished at the next start; nothing is lost.
TimeoutStopSec=90s
Restart=always
RestartSec=2s
Environment=OPENBLAS_NUM_THREADS=1 PYTHONFAULTHANDLER=1

RuntimeDirectory={SERVICE_DIRECTORY.name}
RuntimeDirectoryMode=0750
RuntimeDirectoryPreserve=yes
{_recordings_setting(service.recordings)}
# Who is in the group may read the recordings.
UMask=0027

DevicePolicy=closed
PrivateDevices=yes
PrivateUsers=yes
RestrictRealtime=yes
{_NO_NETWORK}
{_hardening(service)}
[Install]
WantedBy=multi-user.target
"""


def _command(service: Service, *words: str) -> str:
    return " ".join(map(word, (*service.program, *words)))


def _device_settings(service: Service) -> str:
    if service.link.kind is LinkKind.SPI:
        devices = [port.spi.device for port in service.robot.boards]
    else:
        devices = [service.link.device] if service.link.device else []
    group = _GROUPS.get(service.link.kind)
    lines = [f"SupplementaryGroups={group}"] if group else []
    lines += ["# The boards' devices, the processors' sleep, and no others.", "DevicePolicy=closed"]
    lines += [f"DeviceAllow={word(device)} rw" for device in (*devices, CPU_LATENCY)]
    return "\n".join(lines)


def _recordings_setting(recordings: Path) -> str:
    if recordings.is_relative_to(_STATE) and recordings != _STATE:
        directory = path_word(recordings).replace(f"{_STATE}/", "", 1)
        return f"StateDirectory={directory}\nStateDirectoryMode=0750"
    setting = "BindPaths" if _is_hidden(recordings) else "ReadWritePaths"
    # Optional: a disk that is not there is the recorder's to report.
    return f"{setting}={path_word(recordings, is_optional=True)}"


def _loop_network_settings(service: Service) -> str:
    if not service.bind and service.plotjuggler_port is None:
        return _NO_NETWORK
    families = "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6"
    return families if service.bind else f"{families}\nIPAddressDeny=any\nIPAddressAllow=localhost"


def _hardening(service: Service, *allowed_again: str) -> str:
    """Return what both services can do without; some system calls are allowed again."""
    lines = [
        "ProtectSystem=strict",
        *_home_settings((*service.code, *([service.keys] if service.keys else []))),
        "PrivateMounts=yes",
        "PrivateTmp=yes",
        "PrivateIPC=yes",
        "NoNewPrivileges=yes",
        "CapabilityBoundingSet=",
        "AmbientCapabilities=",
        "ProtectClock=yes",
        "ProtectControlGroups=yes",
        "ProtectHostname=yes",
        "ProtectKernelLogs=yes",
        "ProtectKernelModules=yes",
        "ProtectKernelTunables=yes",
        "ProtectProc=invisible",
        "ProcSubset=pid",
        "KeyringMode=private",
        "LockPersonality=yes",
        "MemoryDenyWriteExecute=yes",
        "RemoveIPC=yes",
        "RestrictNamespaces=yes",
        "RestrictSUIDSGID=yes",
        "SystemCallArchitectures=native",
        "SystemCallFilter=@system-service",
        "SystemCallFilter=~@privileged @resources",
        # ZeroMQ sets the scheduling of its threads, if only to what it is, or aborts.
        f"SystemCallFilter={' '.join(('sched_setscheduler', *allowed_again))}",
        # An error and no signal: nothing ends a loop that moves an arm but its safe stop.
        "SystemCallErrorNumber=EPERM",
    ]
    return "\n".join(lines) + "\n"


def _home_settings(needed: tuple[Path, ...]) -> Iterator[str]:
    """Hide homes, but for the program if it is installed in one (or in a temporary directory)."""
    yield "ProtectHome=tmpfs"
    for path in dict.fromkeys(needed):
        if _is_hidden(path):
            yield f"BindReadOnlyPaths={path_word(path)}"


def _is_hidden(path: Path) -> bool:
    return any(path.is_relative_to(place) for place in _HIDDEN)


_NO_NETWORK = "RestrictAddressFamilies=AF_UNIX\nPrivateNetwork=yes\nIPAddressDeny=any"

_USERS = f"""\
# The user of the services. People in group {USER} may command the robot and read its recordings.
g spi -
g dialout -
u {USER} - "armature robot services" /var/lib/armature
m {USER} spi
m {USER} dialout
"""

_DEVICE_RULE = f"""\
# The SPI devices of the boards belong to group spi; the loop may keep processors from deep sleep.
SUBSYSTEM=="spidev", GROUP="spi", MODE="0660"
KERNEL=="cpu_dma_latency", GROUP="{USER}", MODE="0660"
"""


def _limits(robot: Robot) -> str:
    return f"""\
# For people in group {USER} who run `armature loop` by hand; the service has limits of its own.
@{USER} - rtprio {robot.timing.priority}
@{USER} - memlock unlimited
"""
