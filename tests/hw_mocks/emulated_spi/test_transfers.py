"""The real spidev extension, unmodified, against a board in another process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.compiler


def test_every_transfer_call_of_the_extension_reaches_the_board(board: Any) -> None:
    board.run_python(
        """
        spi = open_spi()
        frame = list(range(38))
        assert spi.xfer(list(frame)) == inverted(frame)
        assert spi.xfer2(list(frame)) == inverted(frame)
        assert spi.xfer3(tuple(frame)) == tuple(inverted(frame))
        assert spi.readbytes(5) == [0xFF] * 5
        spi.writebytes([1, 2, 3])
        assert previous(spi) == bytes([1, 2, 3])
        spi.writebytes2(bytes(range(100)))
        assert previous(spi) == bytes(range(100))
        block = [7] * 4096
        assert spi.xfer2(list(block)) == inverted(block)
        """
    )


def test_long_transfers_are_split_by_the_extension(board: Any) -> None:
    board.run_python(
        """
        spi = open_spi()
        data = [index % 200 for index in range(10_000)]
        assert list(spi.xfer3(list(data))) == inverted(data)
        spi.writebytes2(bytes(data))
        assert previous(spi) == bytes(data[8192:])
        """
    )


def test_settings_read_back_and_travel_with_each_transfer(board: Any) -> None:
    board.run_python(
        """
        spi = open_spi()
        assert (spi.mode, spi.bits_per_word, spi.max_speed_hz) == (0, 8, 125_000_000)
        spi.mode, spi.max_speed_hz = 3, 8_000_000
        assert settings(spi) == (3, 8, 8_000_000)
        spi.lsbfirst, spi.cshigh = True, True
        assert settings(spi)[0] == 0b1111
        spi.lsbfirst, spi.cshigh = False, False
        other = open_spi()
        assert (other.mode, other.max_speed_hz) == (3, 8_000_000)
        assert settings(spi, speed_hz=1_000_000, delay_usec=0, bits=7) == (3, 7, 1_000_000)
        spi.bits_per_word = 16
        assert spi.xfer2([1, 2]) == [0xFE, 0xFD]
        assert error_of(spi.xfer2, [1, 2, 3]) == errno.EINVAL
        """
    )


def test_the_last_close_resets_the_speed_and_nothing_else(board: Any) -> None:
    board.run_python("spi = open_spi(); spi.mode = 1; spi.max_speed_hz = 8_000_000")
    board.run_python("spi = open_spi(); assert (spi.mode, spi.max_speed_hz) == (1, 125_000_000)")


def test_impossible_settings_are_refused_as_the_kernel_does(board: Any) -> None:
    board.run_python(
        """
        spi = open_spi()
        request = lambda number, size: 0x40000000 | size << 16 | ord("k") << 8 | number
        for number, value in ((5, b"\\0\\0\\2\\0"), (3, b"!"), (4, bytes(4))):
            code = request(number, len(value))
            assert error_of(fcntl.ioctl, spi.fileno(), code, value) == errno.EINVAL
        assert error_of(fcntl.ioctl, spi.fileno(), request(9, 4), bytes(4)) == errno.ENOTTY
        assert error_of(fcntl.ioctl, spi.fileno(), request(0, 33), bytes(33)) == errno.EINVAL
        assert fcntl.ioctl(spi.fileno(), request(0, 0)) == 0
        """
    )


def test_devices_do_not_mix(board: Any) -> None:
    board.run_python(
        """
        first, second = open_spi(0), open_spi(1)
        first.mode, second.mode = 1, 2
        for value in range(100):
            first.writebytes([1, value])
            second.writebytes([2, value])
            assert previous(first) == bytes([1, value])
            assert previous(second) == bytes([2, value])
        assert (settings(first)[0], settings(second)[0]) == (1, 2)
        """
    )


def test_two_processes_share_one_device(board: Any) -> None:
    code = """
        spi = open_spi()
        for value in range(2000):
            frame = [{who}, value & 0x7F, value >> 7]
            assert spi.xfer2(list(frame)) == inverted(frame)
        """
    programs = [board.start_python(code.format(who=who)) for who in (1, 2)]
    for program in programs:
        program.communicate(timeout=30)
    assert [program.returncode for program in programs] == [0, 0]


def test_a_forked_child_gets_its_own_replies(board: Any) -> None:
    board.run_python(
        """
        spi = open_spi()
        duplicate = os.dup(spi.fileno())
        child = os.fork()
        who = 1 if child else 2
        for value in range(500):
            frame = [who, value & 0x7F, value >> 7]
            assert spi.xfer2(list(frame)) == inverted(frame)
            assert os.read(duplicate, 3) == b"\\xff" * 3
        if not child:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        """
    )


def test_threads_get_their_own_replies(board: Any) -> None:
    board.run_python(
        """
        spi = open_spi()
        wrong = []
        def work(who):
            for value in range(500):
                frame = [who, value & 0x7F, value >> 7]
                if spi.xfer2(list(frame)) != inverted(frame):
                    wrong.append(frame)
        threads = [threading.Thread(target=work, args=(who,)) for who in range(1, 5)]
        for thread in threads:
            thread.start()
        for _ in range(5):
            subprocess.run(["true"], check=True)
            if not os.fork():
                os._exit(spi.xfer2([9, 9]) != [0xF6, 0xF6])
            assert os.wait()[1] == 0
        for thread in threads:
            thread.join()
        assert not wrong
        """
    )


def test_duplicated_descriptors_are_the_device_too(board: Any) -> None:
    board.run_python(
        """
        spi = open_spi()
        copies = [os.dup(spi.fileno()), fcntl.fcntl(spi.fileno(), fcntl.F_DUPFD, 50)]
        copies += [os.dup2(spi.fileno(), 60), os.dup2(spi.fileno(), 61, inheritable=False)]
        spi.close()
        for copy in copies:
            assert stat.S_ISCHR(os.fstat(copy).st_mode)
            assert os.write(copy, b"abc") == 3
            assert os.read(copy, 2) == b"\\xff\\xff"
            os.set_blocking(copy, False)
            assert os.read(copy, 2) == b"\\xff\\xff"
        """
    )


def test_a_reused_descriptor_is_an_ordinary_file_again(board: Any, tmp_path: Path) -> None:
    board.run_python(
        f"""
        spi = open_spi()
        number = spi.fileno()
        os.closerange(number, number + 1)
        file = os.open({str(tmp_path / "file")!r}, os.O_RDWR | os.O_CREAT)
        assert file == number
        assert os.write(file, b"plain") == 5 and os.pread(file, 9, 0) == b"plain"
        assert stat.S_ISREG(os.fstat(file).st_mode)
        """
    )


def test_starting_programs_leaves_an_open_device_alone(board: Any) -> None:
    board.run_python(
        """
        spi = open_spi()
        for _ in range(3):  # vfork: the child closes descriptors while sharing our memory
            assert subprocess.run(["cat"], input=b"x", capture_output=True).stdout == b"x"
            assert spi.xfer2([5]) == [0xFA]
        """
    )


def test_a_signal_does_not_break_a_transfer(board: Any) -> None:
    board.run_python(
        """
        import signal
        count = 0
        def handler(*_):
            global count
            count += 1
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
        spi = open_spi()
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            assert spi.xfer2([1, 2, 3]) == inverted([1, 2, 3])
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert count > 10
        """
    )


def test_a_thread_in_a_hurry_leaves_the_others_their_share(board: Any) -> None:
    board.run_python(
        """
        spi, other = open_spi(0), open_spi(1)
        is_over, hurried = False, 0
        def hurry():
            global hurried
            while not is_over:
                spi.xfer2([1, 2])
                hurried += 1
        thread = threading.Thread(target=hurry)
        thread.start()
        for _ in range(300):
            other.xfer2([1, 2])
        is_over = True
        thread.join()
        assert hurried < 20 * 300, hurried
        """
    )


HANDLER_PROGRAM = r"""
#include <assert.h>
#include <fcntl.h>
#include <linux/spi/spidev.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/time.h>

static int fd;
static volatile int handled;

static void transfer(uint8_t size)
{
    uint8_t data[12] = {1, 2, 3};
    struct spi_ioc_transfer part = {.tx_buf = (uintptr_t)data, .rx_buf = (uintptr_t)data,
                                    .len = size, .speed_hz = 1000000};
    assert(ioctl(fd, SPI_IOC_MESSAGE(1), &part) == size);
}

static void switch_off(int number)
{
    const struct itimerval never = {{0, 0}, {0, 0}};
    (void)number;
    transfer(handled % 2 ? 3 : 12);
    if (++handled == 200)
        setitimer(ITIMER_REAL, &never, 0);
}

int main(void)
{
    const struct itimerval often = {{0, 2000}, {0, 2000}};
    fd = open("/dev/spidev0.0", O_RDWR);
    signal(SIGALRM, switch_off);
    setitimer(ITIMER_REAL, &often, 0);
    while (handled < 200) {
        transfer(12);
        transfer(3);
    }
    return 0;
}
"""


def test_a_signal_handler_may_do_a_transfer(board: Any, compile_c: Callable[..., Path]) -> None:
    """Many programs switch their motors off in one; it must not wait for what it interrupted."""
    board.run(compile_c(HANDLER_PROGRAM, "-O2"))


C_PROGRAM = r"""
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/spi/spidev.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    uint8_t command[3] = {1, 2, 3}, answer[4] = {9, 9, 9, 9}, big[4096] = {0}, huge[4096];
    uint32_t mode = 99;
    struct spi_ioc_transfer two[2] = {{.tx_buf = (uintptr_t)command, .len = 3},
                                      {.rx_buf = (uintptr_t)answer, .len = 4}};
    int fd = open("/dev/spidev0.0", argc > 1 ? atoi(argv[1]) : O_RDWR); /* fortified: __open_2 */
    assert(fd >= 0);
    assert(ioctl(fd, SPI_IOC_RD_MODE32, &mode) == 0 && mode == 0);

    assert(ioctl(fd, SPI_IOC_MESSAGE(2), two) == 7); /* one window: three bytes, four zeros */
    assert(memcmp(answer, "\xff\xff\xff\xff", 4) == 0);
    command[0] = 0xE4; /* the window before this one */
    assert(ioctl(fd, SPI_IOC_MESSAGE(2), two) == 7);
    assert(memcmp(answer, "\x02\x03\x00\x00", 4) == 0);

    command[0] = 1;
    two[0].cs_change = 1; /* two windows: the second one is all the board sees last */
    assert(ioctl(fd, SPI_IOC_MESSAGE(2), two) == 7);
    two[0].rx_buf = (uintptr_t)command;
    command[0] = 0xE4;
    assert(ioctl(fd, SPI_IOC_MESSAGE(1), two) == 3);
    assert(memcmp(command, "\x00\x04\x00", 3) == 0);

    two[0] = (struct spi_ioc_transfer){.tx_buf = (uintptr_t)big, .len = 4};
    two[1] = (struct spi_ioc_transfer){.rx_buf = (uintptr_t)huge, .len = 4096};
    assert(ioctl(fd, SPI_IOC_MESSAGE(2), two) == 4100);
    two[0].rx_buf = (uintptr_t)command;
    two[0].len = 1; /* 4097 bytes of rx */
    assert(ioctl(fd, SPI_IOC_MESSAGE(2), two) == -1 && errno == EMSGSIZE);

    size_t size = argc > 1 ? 8 : 16; /* fortified: __read_chk */
    assert(read(fd, huge, size) == (ssize_t)size && huge[0] == 0xFF);
    return close(fd);
}
"""


def test_a_c_program_sends_messages_of_several_transfers(
    board: Any, compile_c: Callable[..., Path]
) -> None:
    program = compile_c(C_PROGRAM, "-O2", "-D_FORTIFY_SOURCE=2")
    board.run(program)
    board.run(program, "2")
