"""The summary of a recording in a few numbers: for `armature record info` and its `--json`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from daq.recording.layout import OUTCOMES
from daq.recording.reader import Array, Recording

_FACTS = (
    "recording",
    "session",
    "robot",
    "robot_sha256",
    "link",
    "is_virtual",
    "host",
    "armature_version",
    "commit",
    "fingerprint",
    "start_utc",
)
_DROPPED_BITS = 11
_BUCKETS = 1 << (32 - _DROPPED_BITS)
_QUANTILES = {"p50": 0.5, "p99": 0.99, "p999": 0.999}


def summarise(recording: Recording) -> dict[str, Any]:
    """Return what is in a recording; only plain values, as JSON has them. Reads block by block.

    Returns:
        `file`, `size_bytes`, `uncompressed_bytes`, `compression_ratio` (the first over the second),
        `version` of the format, the file's facts, `duration_s`, `samples`, `missing`, `gaps`,
        `skipped`, `wake_us`, `transfer_us`, `work_us` (each p50, p99, p999, max), `joints`,
        `boards` and `events`. None where there is no value.

    Raises:
        RecordingFormatError: The file is damaged.
    """
    size = recording.path.stat().st_size
    uncompressed = sum(
        int(np.prod(column.shape)) * column.dtype.itemsize for column in recording.values()
    )
    gaps = recording.gaps
    start_t_ns = recording.attributes["start_t_ns"]
    return {
        "file": str(recording.path),
        "size_bytes": size,
        "uncompressed_bytes": uncompressed,
        "compression_ratio": round(size / uncompressed, 4) if uncompressed else None,
        "version": recording.version,
        **{name: recording.attributes[name] for name in _FACTS},
        "is_virtual": bool(recording.attributes["is_virtual"]),
        "period_us": recording.period_ns / 1000,
        "duration_s": recording.duration_s,
        "samples": recording.sample_count,
        "missing": sum(gap.count for gap in gaps),
        "gaps": [asdict(gap) for gap in gaps],
        "skipped": sum(int(recording["skipped"][b].sum()) for b in recording.blocks()),
        "wake_us": _timing_us(recording, "wake_ns"),
        "transfer_us": _timing_us(recording, "transfer_ns"),
        "work_us": _timing_us(recording, "work_ns"),
        "joints": _joints(recording),
        "boards": _boards(recording),
        "events": [
            {**event._asdict(), "t_s": (event.t_ns - start_t_ns) * 1e-9}
            for event in recording.events
        ],
    }


def _joints(recording: Recording) -> list[dict[str, Any]]:
    extremes = {
        "position_min_rad": _range(recording, np.fmin),
        "position_max_rad": _range(recording, np.fmax),
        "speed_max_rad_s": _fold(recording, "joint_velocity_rad_s", np.fmax, np.abs),
        "iq_max_a": _fold(recording, "iq_a", np.fmax, np.abs),
    }
    valid = np.zeros(len(recording.joint_names))
    for block in recording.blocks():
        valid += recording["joint_valid"][block].sum(axis=0)
    percent = 100.0 * valid / recording.sample_count if recording.sample_count else valid * np.nan
    extremes["valid_percent"] = percent
    return [
        {"name": name, **{key: _number(values[number]) for key, values in extremes.items()}}
        for number, name in enumerate(recording.joint_names)
    ]


def _range(recording: Recording, fold: np.ufunc) -> Array:
    """Return an extreme of each joint's own angles; of all where it was never homed."""
    own = np.full(len(recording.joint_names), np.nan)
    for block in recording.blocks():
        position = recording["joint_position_rad"][block]
        position[recording["joint_is_homed"][block] == 0] = np.nan
        own = fold(own, fold.reduce(position, axis=0))
    anywhere = _fold(recording, "joint_position_rad", fold)
    result: Array = np.where(np.isnan(own), anywhere, own)
    return result


def _fold(
    recording: Recording,
    name: str,
    fold: np.ufunc,
    of: Callable[[Array], Array] = np.asarray,
) -> Array:
    """Return the extreme of each joint; NaN, which stands for no value, does not count."""
    result = np.full(recording[name].shape[1], np.nan)
    for block in recording.blocks():
        result = fold(result, fold.reduce(of(recording[name][block]), axis=0))
    return result


def _boards(recording: Recording) -> list[dict[str, Any]]:
    counts = np.zeros((len(recording.board_names), 256), np.int64)
    for block in recording.blocks():
        for number, outcomes in enumerate(recording["board_outcome"][block].T):
            counts[number] += np.bincount(outcomes, minlength=256)
    names = recording.attributes["board_profiles"], recording.attributes["board_devices"]
    return [
        {
            "name": name,
            "profile": profile,
            "device": device,
            "outcomes": {
                OUTCOMES.get(code, str(code)): int(row[code])
                for code in np.flatnonzero(row).tolist()
            },
        }
        for name, profile, device, row in zip(recording.board_names, *names, counts, strict=True)
    ]


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _timing_us(recording: Recording, name: str) -> dict[str, float]:
    """Return p50, p99, p999 and max in µs of a column in ns such as `wake_ns`."""
    histogram = _DurationHistogram()
    for block in recording.blocks():
        histogram.add(recording[name][block])
    return histogram.quantiles_us()


class _DurationHistogram:
    """Counts of millions of durations in little memory, in buckets that are 0.02 % wide.

    A bucket is the upper bits of the number as a 32-bit float: those order as the numbers do. Below
    8 µs, and for the maximum, the durations are exact.
    """

    def __init__(self) -> None:
        self._counts = np.zeros(_BUCKETS, np.int64)
        self._maximum_ns = 0

    def add(self, durations_ns: np.ndarray[Any, np.dtype[Any]]) -> None:
        """Count some more, of at least 0 ns."""
        if len(durations_ns):
            buckets = durations_ns.astype(np.float32).view(np.uint32) >> _DROPPED_BITS
            self._counts += np.bincount(buckets, minlength=_BUCKETS)
            self._maximum_ns = max(self._maximum_ns, int(durations_ns.max()))

    def quantiles_us(self) -> dict[str, float]:
        """Return the quantiles p50, p99, p999 and max in µs; empty without any duration."""
        cumulated = np.cumsum(self._counts)
        if not cumulated[-1]:
            return {}
        ranks = [np.ceil(share * cumulated[-1]) for share in _QUANTILES.values()]
        buckets = np.searchsorted(cumulated, ranks).astype(np.uint32)
        values_ns = (buckets << _DROPPED_BITS).view(np.float32).astype(float)
        result = dict(zip(_QUANTILES, (values_ns / 1000).round(3).tolist(), strict=True))
        return {**result, "max": self._maximum_ns / 1000}
