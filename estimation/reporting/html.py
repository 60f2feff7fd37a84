"""Pages of one HTML file that needs nothing but itself, and the parts they are made of.

Such a page fetches nothing, and the browser is told to refuse everything but the page's own style,
pictures and script. Parts are HTML: whatever comes from outside goes through `as_text` first.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from estimation.reporting.numbers import shorten
from estimation.reporting.palette import PALETTE

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'unsafe-inline'"


def make_document(title: str, style: str, body: str, script: str = "") -> str:
    """Return a whole page.

    Args:
        title: HTML.
        style: CSS.
        body: HTML, without its title.
        script: JavaScript; the page must be whole without.
    """
    end = f"<script>{script}</script>\n" if script else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
{body}{end}</body>
</html>
"""


def as_text(text: str) -> str:
    """Return a text from outside, fit for a page: escaped, without what no file could hold."""
    return html.escape(shorten(text, len(text)))


def make_warnings(warnings: Sequence[str]) -> str:
    """Return warnings, which are texts and not HTML, in a frame; nothing if there are none."""
    items = "".join(f"<li>{as_text(warning)}</li>" for warning in warnings)
    return f'<div class="warnings" role="note"><ul>{items}</ul></div>\n' if items else ""


def make_table(name: str, head: Iterable[str], rows: Iterable[tuple[str, Iterable[str]]]) -> str:
    """Return a table; its cells and the attributes of its rows are HTML.

    Args:
        name: Its id.
        head: Cells of the first row.
        rows: Attributes, with a space in front, and cells of the others.
    """
    top = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    body = "".join(
        f"<tr{attributes}>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>\n"
        for attributes, cells in rows
    )
    return (
        f'<div class="wide"><table id="{name}"><thead><tr>{top}</tr></thead>\n'
        f"<tbody>\n{body}</tbody></table></div>"
    )


def make_list(pairs: Iterable[tuple[str, str]]) -> str:
    """Return a list of names and what belongs to them, HTML both."""
    return "<dl>" + "".join(f"<dt>{name}</dt><dd>{value}</dd>\n" for name, value in pairs) + "</dl>"


def compact_svg(svg: str) -> str:
    """Return the same picture in fewer bytes: paths to a hundredth of a point."""
    return re.sub(r'(?<= d=")[^"]*', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), svg)


def make_figure(svg: str, label: str, prefix: str = "") -> str:
    """Return a figure in the page's colours.

    Args:
        svg: The text of an SVG document in the colours of `PALETTE`.
        label: For those who cannot see it; text, not HTML.
        prefix: Goes before all of its ids, which may stand once on a page.
    """
    box = re.search(r'viewBox="[-\d. ]+"', svg)
    inner = svg[svg.index(">", svg.index("<svg")) + 1 :]
    for name, color in PALETTE.items():
        inner = inner.replace(color, f"var(--{name})")
    inner = inner.replace("xlink:href", "href")
    if prefix:
        inner = re.sub(r'((?: id="| href="#|url\(#))', rf"\g<1>{prefix}", inner)
    opening = f'<svg {box[0] if box else ""} role="img" aria-label="{as_text(label)}">'
    return f'<div class="wide figure">{opening}{inner}</div>'
