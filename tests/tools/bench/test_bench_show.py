"""A bench result on a terminal: every row is one line, on 80 columns."""

from __future__ import annotations

import re

import pytest
from bench_examples import make_bare_result, make_load_result, make_result

from estimation.bench.result import BenchResult
from tools.bench.show import show_result


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (
            make_result(),
            {
                "viscous b_eq, motor": "2.40 [2.34, 2.47] ×10⁻⁶ N·m·s/rad | 2.420×10⁻⁶",
                "viscous b_eq, load": "0.00231 [0.00224, 0.00238] N·m·s/rad | 0.002326",
                "Coulomb f, motor": "0.003929 [0.003924, 0.003935] N·m | 0.003935",
                "Coulomb f, load": "0.12181 [0.12165, 0.12197] N·m | 0.1220",
                "breakaway, motor": "0.00449 [0.00436, 0.00461] N·m | 0.004516",
                "breakaway, load": "0.139 [0.135, 0.143] N·m | 0.1400",
                "inertia J_eq, motor": "3.35 [3.29, 3.41] ×10⁻⁵ kg·m² | 3.331×10⁻⁵",
                "inertia J_eq, load": "0.0322 [0.0316, 0.0328] kg·m² | 0.03201",
                "torque constant K_i": "0.02757 N·m/A | –",
            },
        ),
        (
            make_load_result(),
            {
                "torque constant K_i": "0.02731 [0.02722, 0.02740] N·m/A | 0.02730",
                "its loss at 9.00 A": "6.2 [5.5, 6.9] % | 6.000",
            },
        ),
        (make_bare_result(), {"torque constant K_i": "0.02757 N·m/A"}),
    ],
    ids=["friction", "load arm", "on real boards, next to nothing"],
)
def test_quantities_do_not_wrap(
    result: BenchResult,
    expected: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    show_result(result)

    first_table = capsys.readouterr().out.partition("└")[0]
    rows = [re.split(" *│ *", line) for line in first_table.splitlines() if line[0] == "│"]
    assert {name: " | ".join(cells) for _, name, *cells, _ in rows} == expected
