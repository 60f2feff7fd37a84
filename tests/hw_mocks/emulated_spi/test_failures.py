"""Devices that vanish, boards that fail, servers that die: errors, and never a hang."""

from __future__ import annotations

import time
from typing import Any

import pytest

pytestmark = pytest.mark.compiler

WAIT_AND_REPORT = """
    spi = open_spi()
    assert spi.xfer2([1]) == [0xFE]
    print("open", flush=True)
    sys.stdin.readline()
    start = time.monotonic()
    errors = [error_of(spi.xfer2, [1]), error_of(spi.writebytes, [1]), error_of(spi.readbytes, 1)]
    errors.append(error_of(open_spi))
    print(*[errno.errorcode[number] for number in errors], flush=True)
    assert time.monotonic() - start < 1
    """


def test_a_failing_transfer_gives_the_errno_of_the_board(board: Any) -> None:
    board.run_python(
        """
        spi = open_spi()
        for number in (errno.EIO, errno.EREMOTEIO, errno.ETIMEDOUT):
            assert error_of(spi.xfer2, [0xE1, number]) == number
            assert error_of(spi.writebytes, [0xE1, number]) == number
        assert spi.xfer2([1]) == [0xFE]
        """
    )


def test_a_short_transfer_leaves_the_rest_zero(board: Any) -> None:
    board.run_python(
        """
        spi = open_spi()
        assert spi.xfer2([0xE2, 3, 0, 0, 0, 0]) == [0xAA, 0xAA, 0xAA, 0, 0, 0]
        assert spi.xfer2([0xE2, 0, 0]) == [0, 0, 0]
        tx, rx = (ctypes.c_uint8 * 6)(0xE2, 3), (ctypes.c_uint8 * 6)(*b"unread")
        part = struct.pack("=QQIIHBBBBBB", ctypes.addressof(tx), ctypes.addressof(rx), 6, *[0] * 8)
        assert fcntl.ioctl(spi.fileno(), 0x40206B00, part) == part  # its return value is not shown
        libc = ctypes.CDLL(None)
        assert libc.ioctl(spi.fileno(), ctypes.c_ulong(0x40206B00), part) == 3
        assert bytes(rx) == b"\\xaa\\xaa\\xaa\\0\\0\\0"
        assert os.write(spi.fileno(), bytes([0xE2, 2, 0, 0])) == 2
        """
    )


def test_more_than_4096_bytes_are_refused(board: Any) -> None:
    board.run_python(
        """
        spi = open_spi()
        assert os.write(spi.fileno(), bytes(4096)) == 4096
        assert error_of(os.write, spi.fileno(), bytes(4097)) == errno.EMSGSIZE
        assert error_of(os.read, spi.fileno(), 4097) == errno.EMSGSIZE
        part = struct.pack("=QQIIHBBBBBB", 0, 0, 0xFFFFFFFF, *[0] * 8)
        assert error_of(fcntl.ioctl, spi.fileno(), 0x40206B00, part) == errno.EMSGSIZE
        assert os.read(spi.fileno(), 0) == b""
        """
    )


def test_a_removed_device_vanishes_and_comes_back(board: Any) -> None:
    program = board.start_python(WAIT_AND_REPORT)
    assert program.stdout.readline() == "open\n"
    board.order("remove", "/dev/spidev0.0")
    output, _ = program.communicate("\n", timeout=10)
    assert output.split() == ["ENODEV", "ENODEV", "ENODEV", "ENOENT"]
    board.run_python(
        """
        assert not os.path.exists("/dev/spidev0.0") and os.listdir("/dev").count("spidev0.1") == 1
        assert open_spi(1).xfer2([1]) == [0xFE]
        """
    )
    board.order("restore", "/dev/spidev0.0")
    board.run_python("assert open_spi().xfer2([1]) == [0xFE]")


def test_a_killed_server_gives_errors_at_once(board: Any) -> None:
    program = board.start_python(WAIT_AND_REPORT)
    assert program.stdout.readline() == "open\n"
    board.kill()
    output, _ = program.communicate("\n", timeout=10)
    assert output.split() == ["ENODEV", "ENODEV", "ENODEV", "ENXIO"]
    assert program.returncode == 0


def test_a_server_killed_during_a_transfer_ends_it(board: Any) -> None:
    program = board.start_python(
        """
        spi = open_spi()
        print("open", flush=True)
        sys.stdin.readline()
        print(errno.errorcode[error_of(spi.xfer2, [1])], flush=True)
        """
    )
    assert program.stdout.readline() == "open\n"
    board.stop()
    board.nudge(program)
    time.sleep(0.2)
    start = time.monotonic()
    board.kill()
    assert program.communicate(timeout=10)[0] == "ENODEV\n"
    assert time.monotonic() - start < 1


def test_a_stopped_server_times_out_and_late_replies_are_dropped(board: Any) -> None:
    program = board.start_python(
        """
        spi = open_spi()
        print("open", flush=True)
        sys.stdin.readline()
        print(errno.errorcode[error_of(spi.xfer2, [1])], flush=True)
        sys.stdin.readline()
        print(*spi.xfer2([2]), flush=True)
        """
    )
    assert program.stdout.readline() == "open\n"
    board.stop()
    board.nudge(program)
    assert program.stdout.readline() == "ETIMEDOUT\n"
    board.go_on()
    assert program.communicate("\n", timeout=10)[0] == f"{0xFF ^ 2}\n"
