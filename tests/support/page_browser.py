"""What tests of pages share: their outline, and a real browser to show them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import matplotlib.image
import pytest

VOID = {"meta", "br", "link", "img", "hr", "input"}


class Outline(HTMLParser):
    """Tags that balance, the attributes of all, and the text that a reader sees by enclosing id."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"style", "script"} & set(self.open):
            return
        self.words.append(data)
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


class Browser:
    """Chromium without a window; knows what the page wrote to its console."""

    def __init__(self, program: str, directory: Path) -> None:
        self.directory = directory
        self.command = [
            program,
            *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
            *(
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-dev-shm-usage",
            ),
            *("--enable-logging=stderr", "--v=0", "--hide-scrollbars"),
            f"--user-data-dir={directory / 'profile'}",
        ]

    def show(self, page: str, *options: str) -> tuple[str, list[str]]:
        path = self.directory / "page.html"
        path.write_text(page, encoding="utf-8")
        command = [*self.command, *options, path.as_uri()]
        done = subprocess.run(command, capture_output=True, timeout=100, check=True)
        errors = done.stderr.decode(errors="replace").splitlines()
        return done.stdout.decode(), [line for line in errors if ":CONSOLE" in line]


def open_browser(directory: Path) -> Browser:
    """Chromium; without it the test is skipped, but fails in CI."""
    program = shutil.which("chromium")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("no chromium in CI: no browser would have shown the page")
        pytest.skip("no chromium")
    return Browser(program, directory)


def assert_drawn(browser: Browser, page: str, width: int, *, ink_min: float) -> None:
    """A page has ink all the way down, and is no wider than the screen."""
    ruler = """<script>console.log(
      `ruler ${document.documentElement.scrollWidth} in ${innerWidth}`);</script></body>"""
    shot = browser.directory / "page.png"
    measured = page.replace("</body>", ruler)
    options = (f"--window-size={width},1800", f"--screenshot={shot}")
    _, console = browser.show(measured, *options)
    picture = matplotlib.image.imread(shot)[..., :3]
    assert picture.shape[1] == width
    dark = (picture < 0.5).all(axis=2)
    assert ink_min < dark.mean() < 0.5
    for band in range(3):
        assert dark[band * 600 : (band + 1) * 600].any()
    rule = re.search(r"ruler (\d+) in (\d+)", "\n".join(console))
    assert rule and int(rule[1]) <= int(rule[2])
