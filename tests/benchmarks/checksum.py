"""The checksum alone, against the bitwise loop."""

from __future__ import annotations

from collections.abc import Iterator

from firmware_protocol.crc import crc32_mpeg2
from firmware_protocol.profiles import PROFILES
from tests.benchmarks.hand_written import crc32_bitwise
from tests.benchmarks.measure import Row, side_by_side_s


def run(*, repeats: int = 2000, calls: int = 10) -> Iterator[Row]:
    for size in sorted({profile.frame_size - 4 for profile in PROFILES.values()}):
        data = bytes(range(100, 100 + size))
        assert int.from_bytes(crc32_mpeg2(data), "big") == crc32_bitwise(data)
        best = side_by_side_s(
            {"ours": lambda d=data: crc32_mpeg2(d), "bitwise": lambda d=data: crc32_bitwise(d)},
            repeats=repeats,
            calls=calls,
        )
        yield Row(
            f"checksum, {size} bytes", f"{best['ours'] * 1e6:.2f} µs", best["ours"] * 1e6, "µs"
        )
        ratio = best["bitwise"] / best["ours"]
        yield Row(f"checksum, {size} bytes, against bitwise", f"{ratio:.1f} x", ratio, "x")
