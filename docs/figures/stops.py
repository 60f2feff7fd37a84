"""Measures what each stop, and a dead encoder, does to the arm on the mock.

`make figures` runs it: it draws `docs/figures/stops_*.svg` and writes the tables of
`docs/safety.md`, between their markers. In virtual time, so that the same code gives the same
numbers; it takes a minute. A test measures some of them anew and compares.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from mock_arm import STEP_S, Kind, MockArm

from daq.recording.states import State
from daq.stream import messages as m

HERE: Final = Path(__file__).parent
PAGE: Final = HERE.parent / "safety.md"
PROFILES: Final = ("arm", "uomodri", "udriver2")
DRAWN: Final = ("arm", "udriver2")

Ending = Literal["brake", "hold", "coast", "kill -9", "brake, weight not known"]
Situation = Literal["turning", "raised", "lifted"]
ENDINGS: Final[tuple[Ending, ...]] = (
    "brake", "hold", "coast", "kill -9", "brake, weight not known",
)  # fmt: skip
JOINT: Final[dict[Situation, int]] = {"turning": 0, "raised": 1, "lifted": 1}
TURNING_RAD_S: Final = 4.0
RAISED_RAD: Final = {"arm": 0.0, "uomodri": -0.8, "udriver2": 0.0}
"""Where joint2 holds the arm: horizontally; lower where the boards' 10 A are too weak for that."""
_BEFORE_S: Final = 0.1
_STILL_RAD_S: Final = 0.02
"""At rest: the true speed has less than this."""
_POINTS: Final = 500
"""Of a line in a figure, about."""

Floats = npt.NDArray[np.float64]


# --- stops ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stop:
    """One stop, as it truly went, from the moment at which it was asked for.

    Attributes:
        t_s: From then on, and a little before.
        speed_rad_s: Of the joint that matters.
        current_a: Of its motor.
        travel_rad: How far it got on from where it was; of an arm that is up, how far down.
        fastest_rad_s: How fast it was at most, in the same direction.
        rest_s: When it was last faster than nothing.
        off_s: When no board followed its law any more; None while they do.
        is_held: Whether the posture is held in the end.
    """

    t_s: Floats
    speed_rad_s: Floats
    current_a: Floats
    travel_rad: float
    fastest_rad_s: float
    rest_s: float
    off_s: float | None
    is_held: bool


def measure(situation: Situation, ending: Ending, profile: str) -> Stop:
    """Have the arm move or held, end that, and look at what happens."""
    kinds: dict[Ending, Kind] = {"hold": "hold", "coast": "coast"}
    has_model = ending != "brake, weight not known"
    arm = MockArm(profile, stop=kinds.get(ending, "brake"), has_model=has_model)
    joint = JOINT[situation]
    if situation == "turning":
        arm.mode("velocity", TURNING_RAD_S, joints=[arm.joint_names[joint]])
        arm.run(0.9)
    elif situation == "lifted":
        _lift(arm, profile)
    else:
        arm.raise_to((0.0, RAISED_RAD[profile], 0.0, 0.0))
    arm.watch()
    arm.run(_BEFORE_S)
    asked = arm.steps
    if ending == "kill -9":
        arm.run_without_host(1.0 if situation == "turning" else 4.0)
    else:
        arm.send(m.Stop())
        arm.run(1.0 if situation == "turning" else 4.0)
        if situation != "turning" and ending != "coast" and not arm.is_holding:
            for _ in range(20):
                if arm.state is State.STOPPING:
                    arm.run(1.0)
            arm.run(2.0)
    return _stop(arm, joint, asked, sign=1.0 if situation == "turning" else -1.0)


def _lift(arm: MockArm, profile: str) -> None:
    """Lift the arm at 1 rad/s; after `_BEFORE_S` it is where it is held elsewhere here."""
    arm.raise_to((0.0, RAISED_RAD[profile] - 1.0, 0.0, 0.0))
    arm.mode("velocity", 1.0, joints=[arm.joint_names[1]])
    arm.run(0.9)


def _stop(arm: MockArm, joint: int, asked: int, *, sign: float) -> Stop:
    q, speed = arm.true_position_rad(joint), _speed(arm, joint)
    moving = np.flatnonzero(np.abs(speed[asked:]) > _STILL_RAD_S)
    driven = np.flatnonzero(arm.is_driven())
    off = int(driven[-1]) + 1
    is_off = off < arm.steps
    return Stop(
        t_s=STEP_S * np.arange(-asked, arm.steps - asked, dtype=np.float64),
        speed_rad_s=speed,
        current_a=arm.true_current_a(joint),
        travel_rad=abs(float((sign * (q[asked - 1 :] - q[asked - 1])).max())),
        fastest_rad_s=max(0.0, float((sign * speed[asked:]).max())),
        rest_s=STEP_S * (int(moving[-1]) + 1) if len(moving) else 0.0,
        off_s=STEP_S * (off - asked) if is_off else None,
        is_held=arm.is_holding,
    )


def _speed(arm: MockArm, joint: int) -> Floats:
    q = arm.true_position_rad(joint)
    speed: Floats = np.diff(q, prepend=2.0 * q[0] - q[1]) / STEP_S
    return speed


def stop_cell(situation: Situation, stop: Stop) -> str:
    """Return how a stop went, in a few words."""
    off = "held" if stop.is_held else "on"
    if stop.off_s is not None:
        off = f"off after {_time(stop.off_s)}"
    if situation == "turning":
        return f"{stop.travel_rad:.3f} rad in {_time(stop.rest_s)}, {off}"
    return f"{stop.fastest_rad_s:.2f} rad/s, {stop.travel_rad:.2f} rad, {off}"


# --- dead encoders --------------------------------------------------------------------------------

Freeze = Literal["turning at 2 rad/s", "turning at 4 rad/s", "lifted at 1 rad/s",
                 "held, then moved", "held", "jogged", "jogged without links", "homed"]  # fmt: skip
FREEZES: Final[dict[Freeze, tuple[str, float]]] = {
    "turning at 2 rad/s": ("joint1 turning at 2 rad/s", 3.0),
    "turning at 4 rad/s": ("joint1 turning at 4 rad/s", 6.0),
    "lifted at 1 rad/s": ("joint2 lifting the arm at 1 rad/s, nearly horizontal", 1.5),
    "held, then moved": ("joint2 holding the arm horizontal, then sent 0.3 rad up", 2.0),
    "held": ("joint2 holding the arm horizontal, nothing commanded for 5 s", 2.0),
    "jogged": ("joint4 jogged at 0.3 rad/s before homing", 0.8),
    "jogged without links": ("the same, no links in the robot file", 0.8),
    "homed": ("joint3 being homed", 2.0),
}
"""In words, and the speed that the guards aim to keep until the current is zero."""


@dataclass(frozen=True)
class Frozen:
    """What a joint truly did whose encoder froze.

    Attributes:
        noticed_s: How long it took until the robot stopped because of it; None for never.
        until_rad_s: The joint's highest speed until its motor had no more current.
        afterwards_rad_s: The same from then on, in 3 s.
    """

    noticed_s: float | None
    until_rad_s: float
    afterwards_rad_s: float


def freeze(case: Freeze, profile: str) -> Frozen:
    """Freeze an encoder, and look at what the joint truly does."""
    is_homed = case not in ("jogged", "jogged without links", "homed")
    arm = MockArm(profile, has_model="without" not in case, is_homed=is_homed)
    joint = {"turning": 0, "jogged": 3, "homed": 2}.get(case.partition(" ")[0], 1)
    name = arm.joint_names[joint]
    if case == "homed":
        arm.run(0.3)  # boards that hold their references come to rest
        arm.send(m.Home())
        arm.run(0.7)
    elif case.startswith("jogged"):
        arm.mode("velocity", 0.3, joints=[name])
        arm.run(0.5)
    elif case.startswith("turning"):
        arm.mode("velocity", 2.0 if "2" in case else 4.0, joints=[name])
        arm.run(0.9)
    elif case == "lifted at 1 rad/s":
        _lift(arm, profile)
    else:
        arm.raise_to((0.0, RAISED_RAD[profile], 0.0, 0.0))
    arm.watch()
    arm.run(_BEFORE_S)
    frozen = arm.steps
    arm.freeze_encoder(joint)
    if case == "held, then moved":
        arm.mode("position", RAISED_RAD[profile] + 0.3, joints=[name])
    for _ in range(5000):
        if arm.state is not State.ACTIVE:
            break
        arm.run(0.001)
    is_noticed = arm.state is not State.ACTIVE
    noticed = arm.steps
    arm.run(0.001)  # the frame that takes the current away
    zero = arm.steps
    arm.run(3.0)
    speed = np.abs(_speed(arm, joint))
    return Frozen(
        noticed_s=STEP_S * (noticed - frozen) if is_noticed else None,
        until_rad_s=float(speed[frozen:zero].max()),
        afterwards_rad_s=float(speed[zero:].max()),
    )


def frozen_cell(case: Freeze, frozen: Frozen) -> str:
    """Return what a joint with a dead encoder did, in a few words."""
    if frozen.noticed_s is None:
        return f"not noticed; {frozen.until_rad_s:.2f} rad/s"
    is_kept = frozen.until_rad_s <= FREEZES[case][1]
    until = f"{frozen.until_rad_s:.2f} rad/s"
    return (
        f"{until if is_kept else f'**{until}**'} in {_time(frozen.noticed_s)}, "
        f"then {frozen.afterwards_rad_s:.2f} rad/s"
    )


# --- tables and figures ---------------------------------------------------------------------------


def _time(time_s: float) -> str:
    if time_s >= 1.0:
        return f"{time_s:.1f} s"
    return f"{1e3 * time_s:.0f} ms"


def table(head: str, rows: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Return a table with a column per profile."""
    titles = [head, *(f"`{profile}`" for profile in PROFILES)]
    lines = [titles, ["---"] * len(titles), *([name, *cells] for name, cells in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def with_table(text: str, name: str, new: str) -> str:
    """Return a page with another table between the markers of that name."""
    begin, end = f"<!-- {name}: made by `make figures` -->", f"<!-- end of {name} -->"
    before, _, rest = text.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"no {begin} … {end} in {PAGE.name}")
    return f"{before}{begin}\n{new}\n{end}{after}"


def title(ending: Ending) -> str:
    """Return an ending as the page writes it."""
    return f"`{ending}`" if "," not in ending else ending


STYLES: Final[dict[Ending, dict[str, object]]] = {
    "brake": {"color": "#000000", "linewidth": 2.0},
    "hold": {"color": "#0b4a86", "linewidth": 1.5, "linestyle": (0, (6, 2))},
    "coast": {"color": "#d9770a", "linewidth": 1.5, "linestyle": (0, (3, 1.5, 1, 1.5))},
    "kill -9": {"color": "#8c8c8c", "linewidth": 2.6, "linestyle": "-"},
}
"""Told apart by dashes and by lightness: on grey paper, too."""
ORDER: Final[tuple[Ending, ...]] = ("kill -9", "brake", "hold", "coast")
"""The broad line lies below the others."""


def _thinned(values: Floats) -> Floats:
    """Return means of so many neighbours that some hundred points are left."""
    every = max(1, len(values) // _POINTS)
    means: Floats = values[: len(values) // every * every].reshape(-1, every).mean(axis=1)
    return means


def draw(stops: dict[tuple[Situation, Ending], Stop], path: Path, *, heading: str) -> None:
    """Draw speed and current of four stops, in both situations."""
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("svg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    mpl.rcParams.update({"svg.hashsalt": "armature", "font.size": 9.0, "axes.grid": True,
                         "grid.color": "#dddddd", "grid.linewidth": 0.6,
                         "axes.spines.top": False, "axes.spines.right": False})  # fmt: skip
    columns: tuple[tuple[Situation, str, float, float], ...] = (
        ("turning", "a) joint1 turning at 4 rad/s, arm hanging", 1e3, 0.14),
        ("raised", "b) joint2 holding the arm horizontal", 1.0, 3.0),
    )
    figure, axes = plt.subplots(2, 2, figsize=(8.6, 5.2), sharex="col", layout="constrained")
    for column, (situation, name, per_s, until_s) in enumerate(columns):
        above, below = axes[:, column]
        sign = 1.0 if situation == "turning" else -1.0
        for ending in ORDER:
            stop = stops[situation, ending]
            shown = (stop.t_s > -0.1 * until_s) & (stop.t_s < until_s)
            t = per_s * _thinned(stop.t_s[shown])
            speed = sign * _thinned(stop.speed_rad_s[shown])
            above.plot(t, speed, label=ending, **STYLES[ending])
            below.plot(t, _thinned(stop.current_a[shown]), **STYLES[ending])
            if stop.off_s is not None and stop.off_s < until_s:
                at = int(np.searchsorted(stop.t_s, stop.off_s))
                below.plot(per_s * stop.off_s, stop.current_a[at], "o", ms=5.0,
                           color=STYLES[ending]["color"], mec="white", zorder=5)  # fmt: skip
        for panel in (above, below):
            panel.axhline(0.0, color="#555555", linewidth=0.6, zorder=1)
            panel.axvline(0.0, color="#555555", linewidth=0.6, linestyle=":", zorder=1)
            panel.margins(x=0.0)
        above.set_title(name, loc="left", fontsize=9.5)
        below.set_xlabel(f"time since the stop ({'ms' if per_s > 1.0 else 's'})")
        downwards = "" if situation == "turning" else ", downwards"
        above.set_ylabel(f"true speed{downwards} (rad/s)")
        below.set_ylabel("true motor current (A)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    places = [labels.index(ending) for ending in ENDINGS[:4]]
    handles, labels = [handles[k] for k in places], [labels[k] for k in places]
    figure.suptitle(heading, x=0.01, ha="left", fontsize=10.0)
    figure.legend(handles, labels, loc="outside upper right", ncols=4, frameon=False)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)


HEADINGS: Final = {
    "arm": "arm boards: off, they brake",
    "udriver2": "udriver2 boards: off, they coast",
}


def main() -> None:
    """Measure everything, draw the figures, write the tables."""
    text = PAGE.read_text("utf-8")
    stops: dict[str, dict[tuple[Situation, Ending], Stop]] = {}
    for profile in PROFILES:
        cases = itertools.product(JOINT, ENDINGS)
        stops[profile] = {case: measure(*case, profile) for case in cases}
    heads: dict[Situation, str] = {
        "turning": "joint1 from 4 rad/s: travel, time until it rests, power",
        "raised": "arm held horizontal, joint2: fastest and how far down, power",
        "lifted": "arm lifted at 1 rad/s, nearly horizontal, joint2: the same",
    }
    for situation, head in heads.items():
        rows = (
            (title(end), [stop_cell(situation, stops[p][situation, end]) for p in PROFILES])
            for end in ENDINGS
        )
        text = with_table(text, f"stops of an arm that is {situation}", table(head, rows))
    encoders = (
        (words, [frozen_cell(case, freeze(case, p)) for p in PROFILES])
        for case, (words, _) in FREEZES.items()
    )
    text = with_table(text, "dead encoders", table("its encoder freezes while", encoders))
    PAGE.write_text(text, "utf-8")
    for profile in DRAWN:
        draw(stops[profile], HERE / f"stops_{profile}.svg", heading=HEADINGS[profile])


if __name__ == "__main__":
    main()
