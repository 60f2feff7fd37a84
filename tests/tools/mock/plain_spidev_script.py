"""Drives one motor of a uOmodri board with nothing but `spidev` and `struct`.

It knows nothing of armature and would run on a real board just as it runs on a mock:

    armature mock exec --robot bench1 --profile uomodri -- python3 plain_spidev_script.py

It enables motor 1, waits for its calibration, then asks for a quarter turn and checks that the
motor arrives. Time is read from the board's own millisecond counter.
"""

import struct

import spidev

COMMAND = struct.Struct(">BB 2i 2h 2h 2H 2H 2B H")
REPLY = struct.Struct(">HH 2i 2h 2h 2H 2H H")

ENABLE_SYSTEM, ENABLE_MOTOR_1 = 0x80, 0x40
MOTOR_1_READY, ERROR = 0x2000, 0x000F

TIMEOUT_MS = 255  # as long as it gets: the machine that runs a mock may be busy
TURN = 2**24  # steps of a position
KP = round(8.0 * 2**11)  # 8 A per turn
KD = round(2.0 * 2**10)  # 2 A per 1000 rpm
CURRENT_LIMIT = round(5.0 * 2**3)  # 5 A


def crc32_mpeg2(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte << 24
        for _ in range(8):
            crc = crc << 1 ^ 0x04C11DB7 if crc & 0x80000000 else crc << 1
            crc &= 0xFFFFFFFF
    return crc


class Board:
    def __init__(self):
        self.spi = spidev.SpiDev()
        self.spi.open(0, 0)
        self.spi.mode = 0
        self.spi.max_speed_hz = 8_000_000
        self.index = 0
        self.time_ms = 0
        self.last_timestamp = None

    def exchange(self, mode, position=0, kp=0, kd=0):
        """Send a command for motor 1; return the status and the position of motor 1."""
        self.index = (self.index + 1) & 0xFFFF
        limits = (CURRENT_LIMIT, CURRENT_LIMIT)
        # The board's watchdog runs when nothing is enabled, too: without this a good-bye would end
        # in an error that only a power cycle clears.
        timeout_ms = TIMEOUT_MS if mode & ENABLE_SYSTEM else 0
        body = COMMAND.pack(
            mode, timeout_ms, position, 0, 0, 0, 0, 0, kp, 0, kd, 0, *limits, self.index
        )
        received = bytes(self.spi.xfer2(body + struct.pack(">I", crc32_mpeg2(body))))

        low, high = struct.unpack(">HH", received[30:])
        if (high << 16 | low) != crc32_mpeg2(received[:30]):
            raise SystemExit(f"a reply with a wrong checksum: {received.hex()}")
        status, timestamp, position_1, *_ = REPLY.unpack(received[:30])
        if status & ERROR:
            raise SystemExit(f"the board reports error {status & ERROR}")
        if self.last_timestamp is not None:
            self.time_ms += (timestamp - self.last_timestamp) & 0xFFFF
        self.last_timestamp = timestamp
        return status, position_1


def main():
    board = Board()
    mode = ENABLE_SYSTEM | ENABLE_MOTOR_1

    status, position = board.exchange(mode)
    while not status & MOTOR_1_READY:
        status, position = board.exchange(mode)
        if board.time_ms > 10_000:
            raise SystemExit("the motor did not become ready")
    print(f"calibrated after {board.time_ms} ms")

    target = position + TURN // 4
    start_ms = board.time_ms
    while board.time_ms < start_ms + 1000:
        status, position = board.exchange(mode, position=target, kp=KP, kd=KD)
    missed = (target - position) / TURN
    print(f"moved a quarter turn, {missed:+.4f} turns off")
    if abs(missed) > 0.03:
        raise SystemExit("the motor did not arrive")

    for _ in range(3):
        status, _ = board.exchange(0)
    print(f"disabled, status {status:#06x}")


if __name__ == "__main__":
    main()
