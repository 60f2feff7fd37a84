"""What C programs pass to `ioctl`: requests of any width, addresses good and bad."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.compiler

INT_REQUESTS = r"""
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/spi/spidev.h>
#include <stdint.h>
#include <sys/ioctl.h>

/* As classes that keep a request in an int do: read requests are negative ones. */
static int asked(int fd, int request, void *argument) { return ioctl(fd, request, argument); }

int main(void)
{
    int fd = open("/dev/spidev0.0", O_RDWR);
    uint8_t mode = 1, bits = 8, lsb_first = 1, tx[3] = {1, 2, 3}, rx[3];
    uint32_t mode32 = 2, speed_hz = 8000000;
    struct spi_ioc_transfer part = {.tx_buf = (uintptr_t)tx, .rx_buf = (uintptr_t)rx, .len = 3};
    assert((int)SPI_IOC_RD_MODE < 0);
    assert(asked(fd, SPI_IOC_WR_MODE, &mode) == 0 && (mode = 0, 1));
    assert(asked(fd, SPI_IOC_RD_MODE, &mode) == 0 && mode == 1);
    assert(asked(fd, SPI_IOC_WR_MODE32, &mode32) == 0 && (mode32 = 0, 1));
    assert(asked(fd, SPI_IOC_RD_MODE32, &mode32) == 0 && mode32 == 2);
    assert(asked(fd, SPI_IOC_WR_LSB_FIRST, &lsb_first) == 0 && (lsb_first = 7, 1));
    assert(asked(fd, SPI_IOC_RD_LSB_FIRST, &lsb_first) == 0 && lsb_first == 1);
    assert(asked(fd, SPI_IOC_WR_BITS_PER_WORD, &bits) == 0 && (bits = 0, 1));
    assert(asked(fd, SPI_IOC_RD_BITS_PER_WORD, &bits) == 0 && bits == 8);
    assert(asked(fd, SPI_IOC_WR_MAX_SPEED_HZ, &speed_hz) == 0 && (speed_hz = 0, 1));
    assert(asked(fd, SPI_IOC_RD_MAX_SPEED_HZ, &speed_hz) == 0 && speed_hz == 8000000);
    assert(asked(fd, SPI_IOC_MESSAGE(1), &part) == 3 && rx[0] == 0xFE && rx[2] == 0xFC);
    assert(asked(fd, (int)_IOR('k', 9, uint32_t), &mode32) == -1 && errno == ENOTTY);
    /* Whatever stands in the upper half, as the kernel does. */
    assert(ioctl(fd, SPI_IOC_RD_MODE | 0x1234567800000000ul, &mode) == 0);
    return 0;
}
"""

BAD_ADDRESSES = r"""
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/spi/spidev.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static int fd;

static int transfer(const void *tx, void *rx, uint32_t size)
{
    struct spi_ioc_transfer part = {
        .tx_buf = (uintptr_t)tx, .rx_buf = (uintptr_t)rx, .len = size, .speed_hz = 1000000};
    errno = 0;
    return ioctl(fd, SPI_IOC_MESSAGE(1), &part);
}

int main(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int kind = MAP_PRIVATE | MAP_ANONYMOUS;
    uint8_t *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, kind, -1, 0);
    uint8_t *edge = memory + page - 4, *constant;
    uint8_t tx[12] = {0}, rx[12] = {0}, bits = 8;
    void *bad[] = {(void *)1, (void *)(uintptr_t)(memory + page), (void *)(UINTPTR_MAX - 4), edge};
    fd = open("/dev/spidev0.0", O_RDWR);
    mprotect(memory + page, page, PROT_NONE);
    constant = mmap(NULL, page, PROT_READ, kind, -1, 0);
    for (int round = 0; round < 2; round++) {
        assert(transfer(tx, rx, 12) == 12 && transfer(tx, rx, 11) == 11);
        for (int i = 0; i < 4; i++)
            for (uint32_t size = 11; size <= 12; size++) { /* by socket, and by the ready reply */
                assert(transfer(bad[i], rx, size) == -1 && errno == EFAULT);
                assert(transfer(tx, bad[i], size) == -1 && errno == EFAULT);
            }
        assert(transfer(constant, rx, 12) == 12);
        assert(transfer(tx, constant, 12) == -1 && errno == EFAULT);
        assert(transfer(edge, edge, 4) == 4);
        for (int i = 0; i < 3; i++) {
            assert(ioctl(fd, SPI_IOC_MESSAGE(1), bad[i]) == -1 && errno == EFAULT);
            assert(ioctl(fd, SPI_IOC_RD_MODE, bad[i]) == -1 && errno == EFAULT);
            assert(ioctl(fd, SPI_IOC_WR_MAX_SPEED_HZ, bad[i]) == -1 && errno == EFAULT);
            assert(write(fd, bad[i], 3) == -1 && errno == EFAULT);
            assert(read(fd, bad[i], 3) == -1 && errno == EFAULT);
        }
        assert(ioctl(fd, SPI_IOC_WR_LSB_FIRST, NULL) == -1 && errno == EFAULT);
        assert(write(fd, NULL, 3) == -1 && errno == EFAULT);
        assert(transfer(tx, rx, 12) == 12);
        assert(ioctl(fd, SPI_IOC_RD_BITS_PER_WORD, &bits) == 0 && bits == 8);
    }
    return 0;
}
"""


def test_a_request_kept_in_an_int_is_understood(board: Any, compile_c: Callable[..., Path]) -> None:
    board.run(compile_c(INT_REQUESTS, "-Wno-overflow", "-Wno-sign-conversion"))


def test_a_bad_address_is_an_error_not_the_end(board: Any, compile_c: Callable[..., Path]) -> None:
    board.run(compile_c(BAD_ADDRESSES, "-Wno-nonnull", "-Wno-stringop-overflow"))
