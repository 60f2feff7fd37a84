"""Every colour of our figures and pages.

A page is dark where the reader's system is. Forward and backward differ in lightness too, for
grey paper.
"""

from __future__ import annotations

from typing import Final

_COLORS: Final = {  # on paper, and on a dark screen
    "paper": ("#ffffff", "#15181c"),
    "ink": ("#1b1f24", "#e6e9ed"),
    "muted": ("#6a7078", "#98a1ab"),
    "grid": ("#e3e6ea", "#2c3138"),
    "forward": ("#0b4a86", "#6cb2f5"),
    "backward": ("#e8910c", "#f7b24a"),
    "fit": ("#262b31", "#e1e5ea"),
    "band": ("#9db4c8", "#4a6178"),
    "truth": ("#b0247a", "#f07fc0"),
    "accepted": ("#bfe3c6", "#1f4a2c"),
    "heat": ("#a8322d", "#f08a80"),
}
PALETTE: Final = {name: colors[0] for name, colors in _COLORS.items()}
DARK_PALETTE: Final = {name: colors[1] for name, colors in _COLORS.items()}
