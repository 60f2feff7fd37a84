"""Windows that take a reply which the board had ready, without waiting for its process."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.compiler


def test_each_window_gets_the_next_reply_and_the_board_hears_of_each(board: Any) -> None:
    board.run_python(
        """
        spi = open_spi()
        numbers = [number(spi, sent) for sent in range(1000)]
        assert numbers == list(range(numbers[0], numbers[0] + 1000))
        assert heard(spi) == (1000, sum(range(1000)))
        """
    )


STOPPED = """
spi = open_spi()
assert number(spi, 1) == 1
time.sleep(0.1)
print("open", flush=True)
sys.stdin.readline()
print(number(spi, 2), errno.errorcode[error_of(number, spi, 4)], flush=True)
sys.stdin.readline()
print(*heard(spi), flush=True)
"""


def test_a_window_does_not_wait_for_the_boards_process_but_the_next_one_does(board: Any) -> None:
    program = board.start_python(STOPPED)
    assert program.stdout.readline() == "open\n"
    board.stop()
    board.nudge(program)
    assert program.stdout.readline() == "2 ETIMEDOUT\n"
    board.go_on()
    # The window that was given up has reached the board all the same, as it would on a wire.
    assert program.communicate("\n", timeout=10)[0] == "3 7\n"


def test_the_reply_of_a_killed_board_is_not_taken(board: Any) -> None:
    program = board.start_python(
        """
        spi = open_spi()
        assert number(spi) == 1
        time.sleep(0.1)
        print("open", flush=True)
        sys.stdin.readline()
        print(errno.errorcode[error_of(number, spi)], flush=True)
        """
    )
    assert program.stdout.readline() == "open\n"
    board.kill()
    assert program.communicate("\n", timeout=10)[0] == "ENODEV\n"


def test_a_removed_device_takes_its_reply_with_it(board: Any) -> None:
    program = board.start_python(
        """
        spi = open_spi()
        assert number(spi) == 1
        print("open", flush=True)
        sys.stdin.readline()
        print(errno.errorcode[error_of(number, spi)], flush=True)
        """
    )
    assert program.stdout.readline() == "open\n"
    board.order("remove", "/dev/spidev0.0")
    assert program.communicate("\n", timeout=10)[0] == "ENODEV\n"
    board.order("restore", "/dev/spidev0.0")
    board.run_python("assert number(open_spi()) > 1")


@pytest.mark.parametrize(
    "other",
    [
        "spi.mode = 1",
        "spi.mode = 3",
        "spi.lsbfirst = True",
        "spi.bits_per_word = 16",
        "speed_hz = 10_000_001",
        "spi.max_speed_hz = 20_000_000; speed_hz = 0",
    ],
)
def test_only_plain_windows_take_it(board: Any, other: str) -> None:
    """Others are answered by the board, which inverts what it gets."""
    board.run_python(
        f"""
        spi = open_spi()
        speed_hz = 1_000_000
        assert number(spi) == 1
        {other}
        assert number(spi, 5, speed_hz) == (1 << 96) - 1 - 5
        assert heard(spi) == (2, 5)
        """
    )


def test_a_window_without_a_speed_has_the_devices(board: Any) -> None:
    board.run_python(
        """
        spi = open_spi()
        def window(speed_hz):
            frame = ctypes.create_string_buffer((7).to_bytes(12, "big"), 12)
            address = ctypes.addressof(frame)  # in place: one buffer for both directions
            part = struct.pack("=QQIIHBBBBBB", address, address, 12, speed_hz, *[0] * 7)
            part = bytearray(part)  # or ioctl would return the bytes
            assert fcntl.ioctl(spi.fileno(), 0x40206B00, part) == 12
            return int.from_bytes(frame.raw, "big")
        inverted_7 = (1 << 96) - 1 - 7
        assert window(0) == inverted_7  # far above what the board can do
        fcntl.ioctl(spi.fileno(), 0x40046B04, struct.pack("=I", 8_000_000))
        first = window(0)
        assert window(0) == first + 1
        assert window(10_000_001) == inverted_7
        assert window(10_000_000) < 10
        """
    )


def test_setting_a_speed_does_not_cost_a_reply(board: Any) -> None:
    board.run_python(
        """
        spi = open_spi()
        assert number(spi) == 1
        for expected in range(2, 50):
            fcntl.ioctl(spi.fileno(), 0x40046B04, struct.pack("=I", 1_000_000 + expected))
            assert number(spi) == expected
        """
    )


def test_programs_and_threads_share_the_replies_without_losing_or_doubling_any(board: Any) -> None:
    code = """
        spi = [open_spi() for _ in range(2)]
        numbers = [[], []]
        def ask(which):
            for sent in range(200):
                numbers[which].append(number(spi[which], 1))
        child = os.fork()
        threads = [threading.Thread(target=ask, args=[which]) for which in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for taken in numbers:
            assert taken == sorted(taken)
        sys.stdout.write(" ".join(map(str, numbers[0] + numbers[1])) + "\\n")
        sys.stdout.flush()
        if child:
            assert os.waitpid(child, 0)[1] == 0
        """
    programs = [board.start_python(code) for _ in range(2)]
    taken = []
    for program in programs:
        taken += [int(word) for word in program.communicate(timeout=60)[0].split()]
        assert program.returncode == 0
    assert sorted(taken) == list(range(1, 1601))
    assert board.run_python("print(*heard(open_spi()))").split() == ["1600", "1600"]


def test_a_program_may_open_the_device_over_and_over(board: Any) -> None:
    board.run_python(
        """
        first = open_spi()
        before = number(first)
        for expected in range(before + 1, before + 300):
            spi = open_spi()
            assert number(spi) == expected
            spi.close()
        with open("/proc/self/maps") as maps:
            assert maps.read().count(".dma") == 1
        """
    )


def test_a_program_that_asks_without_end_does_not_shut_others_out(board: Any) -> None:
    flood = board.start_python(
        """
        spi = open_spi()
        print("open", flush=True)
        while True:
            number(spi)
        """
    )
    assert flood.stdout.readline() == "open\n"
    board.run_python(
        """
        for spi in (open_spi(0), open_spi(1)):
            for value in range(300):
                assert spi.xfer2([1, value & 0x7F]) == inverted([1, value & 0x7F])
        """
    )
    assert flood.poll() is None
    flood.kill()
    flood.communicate()
