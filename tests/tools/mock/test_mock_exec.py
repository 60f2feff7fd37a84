from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hw_mocks.errors import MockPhysicsError
from hw_mocks.spi_boards import SpiBoards

pytestmark = pytest.mark.compiler

BENCH = ("armature", "mock", "exec", "--robot", "bench1")
# A few lines that programs below share: a sound reply of the `arm` profile, or not.
PREAMBLE = """
import errno, os, spidev, sys, time
from firmware_protocol.codec import command_codec, reply_codec
from firmware_protocol.profiles import PROFILES
command, reply = command_codec(PROFILES["arm"]), reply_codec(PROFILES["arm"])
def open_spi(chip_select=0):
    spi = spidev.SpiDev()
    spi.open(0, chip_select)
    spi.max_speed_hz = 8_000_000
    return spi
def ask(spi):
    return bytes(spi.xfer2(command.encode(command.make(index=1))))
"""


def python(code: str) -> tuple[str, ...]:
    return ("--", "python3", "-c", PREAMBLE + code)


@pytest.fixture
def short_directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="t-") as directory:
        yield Path(directory)


def test_a_plain_spidev_program_drives_a_board(run: Callable[..., Any]) -> None:
    script = Path(__file__).with_name("plain_spidev_script.py")

    options = ("--profile", "uomodri", "--command-timeout-min", "5000")
    result = run(*BENCH, *options, "--", "python3", script)

    assert (result.exit_code, result.err) == (0, "")
    assert "calibrated" in result.lines[0]
    assert "moved a quarter turn" in result.lines[1]


def test_the_plain_program_imports_nothing_else() -> None:
    lines = Path(__file__).with_name("plain_spidev_script.py").read_text().splitlines()

    imports = [line for line in lines if line.startswith(("import", "from"))]

    assert imports == ["import struct", "import spidev"]


@pytest.mark.parametrize(
    ("command", "exit_code"),
    [
        (("true",), 0),
        (("sh", "-c", "exit 7"), 7),
        (("sh", "-c", "kill -9 $$"), 128 + 9),
        (("sh", "-c", "kill -TERM $$"), 128 + 15),
        (("no-such-program",), 127),
        ((__file__,), 126),
    ],
)
def test_exit_code_is_the_programs(
    armature: Callable[..., Any],
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    exit_code: int,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", environment["XDG_CACHE_HOME"])

    result = armature("mock", "exec", "--robot", "bench1", "--", *command)

    assert result.exit_code == exit_code
    assert (command[0] in result.err) == (exit_code in (126, 127))


@pytest.mark.parametrize("words", [(), ("--",)])
def test_nothing_to_run(armature: Callable[..., Any], words: tuple[str, ...]) -> None:
    result = armature("mock", "exec", "--robot", "bench1", *words)

    assert result.exit_code == 2
    assert "-- CMD" in result.err


def test_the_programs_words_and_environment_are_untouched(
    armature: Callable[..., Any],
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", environment["XDG_CACHE_HOME"])
    monkeypatch.setenv("KEPT", "ä\n--robot")
    code = (
        "import json, os, sys; json.dump([sys.argv[2:], dict(os.environ)], open(sys.argv[1], 'w'))"
    )
    words = ["--", "--robot", "laas4", "", "--", "ü x", "--version"]
    seen = str(tmp_path / "seen")

    armature("mock", "exec", "--robot", "bench1", "--", sys.executable, "-c", code, seen, *words)

    arguments, variables = json.loads(Path(seen).read_text())
    assert arguments == words
    assert "shim-" in variables.pop("LD_PRELOAD")
    assert variables.pop("ARMATURE_SPIDEV_DIR")
    assert variables == {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}


def test_both_devices_are_live_and_a_wrong_spi_mode_gives_garbage(run: Callable[..., Any]) -> None:
    code = """
boards = [open_spi(0), open_spi(1)]
for spi in boards:
    print(reply.is_sound(ask(spi)), reply.is_sound(ask(spi)), reply.decode(ask(spi)).index)
for mode in (1, 0):
    boards[0].mode = mode
    ask(boards[0])
    print(reply.is_sound(ask(boards[0])))
"""
    result = run("armature", "mock", "exec", "--robot", "laas4", *python(code))

    assert result.lines == ["True True 1", "True True 1", "False", "True"]


def test_a_device_that_vanishes(run: Callable[..., Any]) -> None:
    code = """
spi = open_spi()
deadline = time.monotonic() + 30
while time.monotonic() < deadline:
    try:
        assert reply.is_sound(ask(spi))
        time.sleep(0.001)
    except OSError as error:
        print(errno.errorcode[error.errno])
        break
# The transfer fails first; the node goes a moment later.
while os.path.exists("/dev/spidev0.0") and time.monotonic() < deadline:
    time.sleep(0.001)
try:
    open_spi()
except OSError as error:
    print(errno.errorcode[error.errno])
print(os.path.exists("/dev/spidev0.0"))
"""
    result = run(*BENCH, "--fault", "vanish:at=0.2", *python(code))

    assert result.lines == ["ENODEV", "ENOENT", "False"]


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("flip:rate=1,direction=reply", "damaged"),
        ("stuck-high:at=0,for=1000", "ff"),
        ("io-error:at=0,for=1000", "EIO"),
    ],
)
def test_faults_reach_the_program(run: Callable[..., Any], fault: str, expected: str) -> None:
    code = """
spi = open_spi()
try:
    frame = ask(spi)
    is_constant = len(set(frame)) == 1
    print(frame[:1].hex() if is_constant else "sound" if reply.is_sound(frame) else "damaged")
except OSError as error:
    print(errno.errorcode[error.errno])
"""
    assert run(*BENCH, "--fault", fault, *python(code)).lines == [expected]


COUNT_SIGNALS = """
import signal
seen = []
for number in (1, 2, 3, 10, 12, 15):
    signal.signal(number, lambda number, _: seen.append(number))
for count in range(1, int(sys.argv[1]) + 1):
    print("ready", flush=True)
    deadline = time.monotonic() + 30
    while len(seen) < count and time.monotonic() < deadline:
        time.sleep(0.01)
time.sleep(0.2)
print(*seen, flush=True)
sys.exit(5)
"""


def test_signals_are_passed_on_once(start: Callable[..., Any]) -> None:
    numbers = (1, 2, 3, 10, 12, 15)
    process = start(*BENCH, *python(COUNT_SIGNALS), str(len(numbers)))
    for number in numbers:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)

    output, _ = process.communicate(timeout=40)
    assert (output, process.returncode) == ("1 2 3 10 12 15\n", 5)


def test_ctrl_c_on_a_terminal_interrupts_the_program_once(start: Callable[..., Any]) -> None:
    host, terminal = os.openpty()
    with open(host, "r+b", buffering=0) as keyboard:
        process = start(
            "setsid", "--ctty", "--wait", *BENCH, *python(COUNT_SIGNALS), "1", stdin=terminal
        )
        os.close(terminal)
        assert process.stdout.readline() == "ready\n"

        keyboard.write(b"\x03")

        output, _ = process.communicate(timeout=40)
    assert (output, process.returncode) == ("2\n", 5)


def test_what_was_to_be_ignored_is_ignored_by_the_program(run: Callable[..., Any]) -> None:
    code = "import signal; print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)"
    command = (*BENCH, "--", "python3", "-c", code)
    result = run("sh", "-c", 'trap "" HUP; exec "$@"', "sh", *command)
    assert result.lines == ["True"]


def test_a_signal_that_comes_too_early_waits_for_the_program(
    start: Callable[..., Any], environment: dict[str, str], short_directory: Path
) -> None:
    """Sent before the boards are up; nothing is left behind."""
    env = {**environment, "TMPDIR": str(short_directory)}
    process = start(*BENCH, *python("time.sleep(60)"), env=env)
    deadline_s = time.monotonic() + 30
    while not list(short_directory.iterdir()) and time.monotonic() < deadline_s:
        time.sleep(0.001)

    process.terminate()

    assert process.wait(timeout=30) == 128 + signal.SIGTERM
    assert [path for path in short_directory.iterdir() if path.suffix != ".lock"] == []


@pytest.mark.parametrize("ending", ["end", "kill the program", "terminate armature"])
def test_nothing_is_left_behind(
    start: Callable[..., Any], environment: dict[str, str], short_directory: Path, ending: str
) -> None:
    code = 'print(os.getpid(), flush=True); open_spi(); input(); print("over")'
    env = {**environment, "TMPDIR": str(short_directory)}
    process = start(*BENCH, *python(code), env=env, stdin=subprocess.PIPE)
    program = int(process.stdout.readline())
    assert list(short_directory.iterdir())

    if ending == "end":
        process.communicate("\n", timeout=30)
    elif ending == "kill the program":
        os.kill(program, signal.SIGKILL)
    else:
        process.terminate()

    codes = {"end": 0, "kill the program": 128 + 9, "terminate armature": 128 + 15}
    assert process.wait(timeout=30) == codes[ending]
    # The device's lock file may stay, there is one per device and not one per run.
    assert [path for path in short_directory.iterdir() if path.suffix != ".lock"] == []
    with pytest.raises(ProcessLookupError):
        os.kill(program, 0)


def test_a_simulation_that_fails_ends_the_program(
    armature: Callable[..., Any],
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    file = tmp_path / "pid"

    def fail(_boards: SpiBoards, _is_over: object) -> None:
        deadline = time.monotonic() + 30
        while not (file.exists() and file.read_text()) and time.monotonic() < deadline:
            time.sleep(0.01)
        raise MockPhysicsError("the arm flew away")

    monkeypatch.setenv("XDG_CACHE_HOME", environment["XDG_CACHE_HOME"])
    monkeypatch.setattr(SpiBoards, "run", fail)
    result = armature(
        *("mock", "exec", "--robot", "bench1", "--"),
        *("sh", "-c", f"echo $$ > {file}.new; mv {file}.new {file}; exec sleep 60"),
    )

    assert result.exit_code == 1
    assert result.err == "armature: the arm flew away\n"
    with pytest.raises(ProcessLookupError):
        os.kill(int(file.read_text()), 0)


def test_all_mistakes_in_the_options_are_listed(armature: Callable[..., Any]) -> None:
    result = armature(
        *("mock", "exec", "--robot", "laas5", "--seed", "-1", "--spread", "nan"),
        *("--effects", "quiet,backlash=1", "--fault", "flip:rate=2,speed=1", "--fault", "flop"),
        *("--", "true"),
    )

    assert (result.exit_code, result.out) == (2, "")
    for text in ("laas5", "--seed -1", "--spread nan", "'quiet'", "'backlash'", "rate=2"):
        assert text in result.err
    for text in ("'speed'", "'flop'", "'flip'"):
        assert text in result.err


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--fault", "unplug:at=0"), "'unplug:at=0'"),
        (("--fault", "skip:rate=0.1"), "'skip:rate=0.1'"),
        (("--fault", "flip:rate=0.5,board=1"), "bench1"),
        (("--fault", ""), "''"),
        (("--profile", "arm2"), "'arm2'"),
        (("--seed", "x"), "--seed"),
        (("--seed", "9" * 5000), "--seed"),
        (("--effects", ""), "''"),
        (("--effects", "default,iq_noise_a=nan"), "iq_noise_a = nan"),
        (("--robot", ""), '""'),
        (("--robot", "/"), "/: "),
        (("--robot", "/dev/zero"), "/dev/zero: "),
        (("--rob", "bench1"), "--robot"),
    ],
)
def test_bad_options(armature: Callable[..., Any], options: tuple[str, ...], named: str) -> None:
    robot = () if options[0].startswith("--rob") else ("--robot", "bench1")

    result = armature("mock", "exec", *robot, *options, "--", "true")

    assert (result.exit_code, result.out) == (2, "")
    assert named in result.err
