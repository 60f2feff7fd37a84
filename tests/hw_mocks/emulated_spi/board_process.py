"""A board for the tests: serves emulated devices, obeys the first byte it is sent.

Plain windows of 12 bytes get the next of a series of numbers, which is ready before they come.

Usage: board_process.py DIRECTORY DEVICE...; `remove DEVICE` and `restore DEVICE` come in on stdin.
"""

from __future__ import annotations

import select
import struct
import sys
from pathlib import Path

from hw_mocks.emulated_spi.server import SpidevServer, SpiTransfer

FAIL = 0xE1  # fail with the errno in the second byte
SHORTEN = 0xE2  # clock back only as many bytes as the second byte says
SETTINGS = 0xE3  # mode, bits per word and speed of this transfer
PREVIOUS = 0xE4  # what the transfer before this one sent, behind its length
HEARD = 0xE5  # how many windows of 12 bytes there were, and the sum of what they sent

PREPARED_BYTES = 12
SPEED_MAX_HZ = 10_000_000


class Board:
    def __init__(self) -> None:
        self.previous = b""
        self.next_number = 0
        self.heard_count = self.heard_sum = 0

    def prepare(self) -> bytes:
        self.next_number += 1
        return self.next_number.to_bytes(PREPARED_BYTES, "big")

    def count(self, transfer: SpiTransfer) -> bytes:
        self.heard_count += 1
        self.heard_sum += int.from_bytes(transfer.tx, "big")
        is_plain = transfer.mode == 0 and transfer.bits_per_word == 8
        if is_plain and transfer.speed_hz <= SPEED_MAX_HZ:
            return self.next_number.to_bytes(PREPARED_BYTES, "big")
        return inverted(transfer.tx)

    def answer(self, transfer: SpiTransfer) -> bytes | int:
        tx, previous = transfer.tx, self.previous
        self.previous = tx
        if tx[0] == HEARD:
            return struct.pack(">QQ", self.heard_count, self.heard_sum)
        if tx[0] == FAIL:
            return tx[1]
        if tx[0] == SHORTEN:
            return bytes([0xAA]) * tx[1]
        if tx[0] == SETTINGS:
            settings = (transfer.mode, transfer.bits_per_word, transfer.speed_hz)
            return struct.pack(">IBI", *settings).ljust(len(tx), b"\0")
        if tx[0] == PREVIOUS:
            self.previous = previous
            return (struct.pack(">H", len(previous)) + previous)[: len(tx)].ljust(len(tx), b"\0")
        return inverted(tx)


def inverted(data: bytes) -> bytes:
    return bytes(byte ^ 0xFF for byte in data)


def main(directory: str, *devices: str) -> None:
    boards = {device: Board() for device in devices}

    def answer(transfer: SpiTransfer) -> bytes | int:
        board = boards[transfer.device]
        return (board.count if len(transfer.tx) == PREPARED_BYTES else board.answer)(transfer)

    def prepare(device: str) -> bytes:
        return boards[device].prepare()

    with SpidevServer(
        Path(directory), devices, answer, prepare=prepare, speed_max_hz=SPEED_MAX_HZ
    ) as server:
        print("ready", flush=True)
        while True:
            server.poll(0.0005)
            if not select.select([sys.stdin], [], [], 0)[0]:
                continue
            words = sys.stdin.readline().split()
            if not words:
                return
            getattr(server, words[0])(words[1])
            print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
