"""A board for the tests: serves emulated devices, obeys the first byte it is sent.

Usage: board_process.py DIRECTORY DEVICE...; `remove DEVICE` and `restore DEVICE` come in on stdin.
"""

from __future__ import annotations

import select
import struct
import sys
from pathlib import Path

from hw_mocks.spidev_server import SpidevServer, SpiTransfer

FAIL = 0xE1  # fail with the errno in the second byte
SHORTEN = 0xE2  # clock back only as many bytes as the second byte says
SETTINGS = 0xE3  # mode, bits per word and speed of this transfer
PREVIOUS = 0xE4  # what the transfer before this one sent, behind its length


class Board:
    def __init__(self) -> None:
        self.previous = b""

    def answer(self, transfer: SpiTransfer) -> bytes | int:
        tx, previous = transfer.tx, self.previous
        self.previous = tx
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
        return bytes(byte ^ 0xFF for byte in tx)


def main(directory: str, *devices: str) -> None:
    boards = {device: Board() for device in devices}

    def answer(transfer: SpiTransfer) -> bytes | int:
        return boards[transfer.device].answer(transfer)

    with SpidevServer(Path(directory), devices, answer) as server:
        print("ready", flush=True)
        while True:
            server.poll(0.01)
            if not select.select([sys.stdin], [], [], 0)[0]:
                continue
            words = sys.stdin.readline().split()
            if not words:
                return
            getattr(server, words[0])(words[1])
            print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
