"""The committed page `RECORDING_FORMAT.md`, made from the layout.

`python -m daq.recording.document` prints it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from daq.recording.checks import CHUNK_BYTES_MAX, ROWS_MAX
from daq.recording.datasets import CHUNK_ROWS
from daq.recording.layout import (
    ATTRIBUTES,
    COLUMNS,
    FORMAT,
    ROBOT,
    SAMPLES,
    SUFFIX,
    TABLE_TEXTS,
    TABLES,
    VERSION_MAJOR,
    VERSION_MINOR,
    ColumnAxis,
    Dataset,
)

_HEAD = f"""# The recording

<!-- Generated from daq/recording/layout.py by `make docs`; do not edit. -->

Format `{FORMAT}`, version {VERSION_MAJOR}.{VERSION_MINOR}. One HDF5 file (`{SUFFIX}`) per
recording, which needs no other file to be understood. It is written as `NAME{SUFFIX}.part`, read
back, and renamed: what has its final name is complete. Readers accept any minor version and refuse
another major one.

Numbers are little-endian. Columns of a group have the same number of rows. Every dataset has the
attributes `unit` (empty for what has none) and `description`; columns of codes also `codes` and
`code_names`, columns of flags `bits` and `bit_names`. Datasets of numbers are compressed by HDF5's
own shuffle and gzip filters, which MATLAB, Octave and h5py read; those of samples have chunks of
{CHUNK_ROWS} samples of one joint or board. Text is UTF-8 of variable length.

Readers refuse a file as damaged whose attributes or datasets have other types, whose `robot` does
not have the SHA-256 that `robot_sha256` says, or that declares what cannot be in it: rows whose
chunks were never written, chunks above {CHUNK_BYTES_MAX >> 20} MB, more than {ROWS_MAX} samples.

Values are at the joint, in SI units, and angles grow in the joint's direction; currents and gains
are the motor's. Measured values of a reply that was not valid are NaN (0 where the column holds
integers), and so are commands in a cycle without an exchange. In a row stands the command that was
sent in the cycle, beside the reply that was received in it: the board made that reply before it
had the command.

Columns of floats are rounded to a multiple of a power of two that is at most an eighth of what the
wire resolves, at the joint: the error is at most a sixteenth of the wire's last bit, and the bytes
compress. The attribute `grid` says to what, for each joint or board.

```python
from daq.recording import open_recording

with open_recording("run{SUFFIX}") as recording:
    q = recording["joint_position_rad"][:]  # (samples, joints), rad
```
"""


def recording_page() -> str:
    """Return the whole of `RECORDING_FORMAT.md`."""
    lines = [_HEAD, "## Attributes of the file", ""]
    rows = [(f"`{a.name}`", a.kind, f"1.{a.since_minor}", a.description) for a in ATTRIBUTES]
    lines += _table(("attribute", "type", "since", "meaning"), rows)
    lines += ["", f"## `/{ROBOT}`", "", "Text: the robot file, exactly.", ""]
    lines += [f"## `/{SAMPLES}`", "", "One row per sample.", ""]
    lines += _datasets(COLUMNS.values())
    for dataset in COLUMNS.values():
        for kind, names in (("Codes", dataset.codes), ("Bits", dataset.bits)):
            if names:
                listed = ", ".join(f"{number} {name}" for number, name in names.items())
                lines += ["", f"{kind} of `{dataset.name}`: {listed}."]
    for group, datasets in TABLES.items():
        lines += ["", f"## `/{group}`", "", TABLE_TEXTS[group], "", *_datasets(datasets)]
    return "\n".join(lines) + "\n"


def _datasets(datasets: Iterable[Dataset]) -> list[str]:
    rows = []
    for dataset in datasets:
        shape = "rows" if dataset.axis is ColumnAxis.NONE else f"rows × {dataset.axis.value}"
        kind = "text" if dataset.dtype == "str" else dataset.dtype.lstrip("<|")
        optional = " Only where a board reports it." if dataset.is_optional else ""
        rows.append(
            (f"`{dataset.name}`", kind, shape, dataset.unit, f"{dataset.description}{optional}")
        )
    return _table(("dataset", "type", "shape", "unit", "meaning"), rows)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [headings, ["---"] * len(headings), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


if __name__ == "__main__":
    sys.stdout.write(recording_page())
