"""The picture of the review page in the documentation, taken by the browser that tests it: `make pictures`.

It holds the words that it shows as a text chunk of the PNG: a test compares these with the page of today, for the pixels
hang on the fonts of a machine.
"""

from __future__ import annotations

import shutil
import struct
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ddpfix import engine
from ddpfix.review.page import page
from tests.gitrepos import make, own_settings
from tests.review.project import reviewed

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "images" / "review-page.png"
KEY = b"Description"
_WORDS = "[...document.querySelectorAll('header, aside, article')].filter(e => e.getBoundingClientRect().top < innerHeight)"


def written(folder: Path) -> Path:
    """The review page of the tutorial's project."""
    source = ROOT / "fixtures" / "tutorial"
    files = {p.relative_to(source).as_posix(): p.read_bytes() for p in sorted(source.rglob("*")) if p.suffix in (".py", ".md")}
    found = reviewed(make(folder, files, name="landcover"))
    path = folder / "review.html"
    path.write_text(page(found, read=engine.disk_reader(found.root)), encoding="utf-8")
    return path


def opened(browser: Browser, path: Path) -> Page:
    """The page as it is pictured: at the finding that hangs, without the name of the commit, which is another in each run."""
    tab = browser.new_page(viewport={"width": 1300, "height": 860}, color_scheme="light")
    tab.goto(path.as_uri())
    tab.evaluate("document.querySelectorAll('.base').forEach(e => e.remove())")
    tab.locator("article", has_text="DDP301").first.scroll_into_view_if_needed()
    return tab


def words(tab: Page) -> str:
    return " ".join(str(tab.evaluate(f"{_WORDS}.map(e => e.innerText).join(' ')")).split())


def words_of(png: bytes) -> str:
    """What a picture says that it shows."""
    for kind, data in _chunks(png):
        if kind == b"iTXt" and data.startswith(KEY + b"\0"):
            return data[len(KEY) + 5 :].decode()
    return ""


def with_words(png: bytes, shown: str) -> bytes:
    """The picture, with a text chunk in front of its end."""
    data = KEY + b"\0\0\0\0\0" + shown.encode()
    chunk = struct.pack(">I", len(data)) + b"iTXt" + data + struct.pack(">I", zlib.crc32(b"iTXt" + data))
    return png[:-12] + chunk + png[-12:]


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        at += length + 12


def main() -> None:
    from playwright.sync_api import sync_playwright

    from tests.conftest import CHROMIUM

    if CHROMIUM is None:
        sys.exit("no Chromium here: `apt-get install chromium`")
    folder = Path(tempfile.mkdtemp())
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as driver:
        own_settings(patch, folder)
        path = written(folder)
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        tab = opened(browser, path)
        PICTURE.write_bytes(with_words(tab.screenshot(), words(tab)))
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
