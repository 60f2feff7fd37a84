"""The style sheet of all pages; each adds what its own tables need."""

from __future__ import annotations

from estimation.reporting.palette import DARK_PALETTE, PALETTE

_STYLE = """
* { box-sizing: border-box }
html { color-scheme: light dark; -webkit-text-size-adjust: 100% }
body { margin: 0 auto; padding: 1rem; max-width: 62rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif }
h1 { font-size: 1.6rem; margin: 0 } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem }
p { margin: .3rem 0 } .muted, small { color: var(--muted) }
code { font-size: .85em; overflow-wrap: anywhere }
.warnings { border-left: 4px solid var(--backward); padding: .4rem 1rem; margin: 1rem 0 }
.warnings ul { margin: 0; padding-left: 1rem }
.wide { overflow-x: auto; -webkit-overflow-scrolling: touch }
table { border-collapse: collapse; font-variant-numeric: tabular-nums lining-nums }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--grid); text-align: left;
  vertical-align: top }
thead th { border-bottom: 1.5px solid var(--ink); font-weight: 600 }
tr.rejected td { color: var(--muted) } tr.selected td { font-weight: 600 }
svg { display: block; width: 100%; min-width: 40rem; height: auto }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 0 }
dt { color: var(--muted) } dd { margin: 0; overflow-wrap: anywhere }
@media (max-width: 40rem) { body { padding: .7rem } th, td { padding: .2rem .35rem } }
@media print { body { max-width: none; padding: 0; font-size: 9.5pt }
  .wide { overflow: visible } svg { min-width: 0 } h2 { break-after: avoid }
  tr, .figure { break-inside: avoid } .screen { display: none } }
"""


def style_sheet(own: str = "") -> str:
    """Return the style of a page, with CSS of its own, in the colours of its figures.

    The colours are variables, so that the page can be dark where the reader's system is.
    """
    light, dark = (
        "".join(f"--{name}:{color};" for name, color in colors.items())
        for colors in (PALETTE, DARK_PALETTE)
    )
    screen = "@media screen and (prefers-color-scheme:dark)"
    return f":root{{{light}}}{screen}{{:root{{{dark}}}}}{_STYLE}{own}"
