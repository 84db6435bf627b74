"""The documentation as a site: it builds without a warning, every link leads somewhere, and it looks right in a browser."""

from __future__ import annotations

import functools
import http.server
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest

from ddpfix.catalog import all_codemods
from docs.made import demo, navigation, symptoms
from tests.gitrepos import own_settings
from tests.review.conftest import is_foreign
from tests.site import pictures

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[2]
INCLUDED = ("CHANGELOG.md", "CONTRIBUTING.md")  # pages of the root that a page of the site takes in


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built in a copy: `make site` builds it in the project itself."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("zensical.toml", *INCLUDED):
        shutil.copy(ROOT / name, folder)
    command = [str(Path(sys.executable).parent / "zensical"), "build", "--strict"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "build" / "site"


@dataclass
class Read(HTMLParser):
    """What a page leads to, and what may be led to in it."""

    links: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name == "id" and value:
                self.ids.add(value)


def test_every_page_is_in_the_navigation() -> None:
    there = {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")}
    assert sorted(there) == sorted(navigation.pages())


def test_every_link_of_the_built_site_leads_to_a_page_and_a_place_in_it(site: Path) -> None:
    read: dict[Path, Read] = {}
    for path in site.rglob("*.html"):
        read[path] = Read()
        read[path].feed(path.read_text(encoding="utf-8"))
    broken = []
    for path, page in read.items():
        for link in page.links if path.name != "404.html" else ():  # its links hang on where the site is served
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            places = read[target].ids if target in read else set()
            if not target.is_file() or (parts.fragment and places and unquote(parts.fragment) not in places):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert len(read) > 100 and broken == []


def test_nothing_but_pages_is_in_it(site: Path) -> None:
    assert [p.name for p in site.rglob("*") if p.suffix in (".py", ".pyc", ".md")] == []


def test_every_codemod_is_the_cause_of_a_symptom() -> None:
    named = {f"DDP{number}" for symptom in symptoms.SYMPTOMS for number in symptom.codes.split()}
    assert named == {codemod.code for codemod in all_codemods()}


def test_the_picture_of_the_demo_shows_what_it_prints() -> None:
    picture = (ROOT / "docs" / "images" / "demo.svg").read_text(encoding="utf-8")
    assert demo.is_current(picture, demo.shown(demo.printed())), "run `make docs`"


@pytest.mark.browser
def test_the_picture_of_the_review_page_shows_the_page_of_today(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_settings(monkeypatch, tmp_path)
    tab = pictures.opened(browser, pictures.written(tmp_path))
    seen = pictures.words(tab)
    tab.close()
    assert "rank 0 waits here for other ranks" in seen
    assert pictures.words_of(pictures.PICTURE.read_bytes()) == seen, "run `make pictures`"


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the output is the tests'."""


@pytest.mark.browser
@pytest.mark.parametrize("width", [1400, 390])
def test_no_page_is_wider_than_the_window_or_asks_another_server(address: str, browser: Browser, width: int) -> None:
    names = ("index.html", "tutorial.html", "symptoms.html", "cli.html", "codemods/unsynced-metric.html")
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme="dark" if width < 400 else "light")
    tab = context.new_page()
    wrong: list[str] = []
    tab.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    tab.on("request", lambda request: wrong.append(request.url) if is_foreign(request.url) else None)
    for name in names:
        tab.goto(f"{address}/{name}")
        if (seen := tab.evaluate("document.documentElement.scrollWidth")) > width:
            wrong.append(f"{name} is {seen} wide")
        if tab.locator("img").evaluate_all("all => all.some(one => one.complete && !one.naturalWidth)"):
            wrong.append(f"{name} lacks a picture")
    context.close()
    assert wrong == []


@pytest.mark.browser
def test_what_is_copied_from_a_session_is_what_is_typed(address: str, browser: Browser) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    tab = context.new_page()
    tab.goto(f"{address}/tutorial.html")
    tab.locator(".highlight", has_text="ddpfix diagnose").get_by_title("Copy").click()
    copied = tab.evaluate("navigator.clipboard.readText()")
    context.close()
    assert copied.strip() == "ddpfix diagnose train.log ."


@pytest.mark.browser
def test_the_search_finds_a_code(address: str, browser: Browser) -> None:
    tab = browser.new_page()
    tab.goto(f"{address}/index.html")
    tab.get_by_role("button", name="Search").first.click()
    tab.locator("input:visible").fill("DDP301")
    tab.get_by_text(re.compile(r"^[1-9]\d* results?$")).wait_for()
    assert tab.locator("a:visible", has_text="collective-under-rank-guard").count()
    tab.close()
