"""One reviewed repository for the session, and tabs of the browser (tests/conftest.py) with its page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ddpfix import engine
from ddpfix.review.items import Review
from ddpfix.review.page import page
from tests.gitrepos import own_settings
from tests.review.project import classifier, reviewed

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    """A tab of its own, with nothing kept by the browser. Errors in it, and requests that leave the page, fail the test."""
    context = browser.new_context(viewport={"width": 1300, "height": 900}, accept_downloads=True)
    context.set_default_timeout(60_000)
    made = context.new_page()
    wrong: list[str] = []
    made.on("pageerror", lambda error: wrong.append(str(error)))
    made.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    made.on("dialog", lambda dialog: wrong.append(f"a dialog: {dialog.message}"))
    made.on("request", lambda request: wrong.append(request.url) if is_foreign(request.url) else None)
    yield made
    context.close()
    assert wrong == []


def is_foreign(url: str) -> bool:
    return not url.startswith(("file:", "data:", "blob:", "http://127.0.0.1:"))


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Review]:
    """The example classifier, looked at: 24 findings, one unsafe, one told, two that go together."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("reviewed")
        own_settings(patch, folder)
        patch.setenv("DDPFIX_CACHE_DIR", str(folder / "cache"))
        yield reviewed(classifier(folder))


@pytest.fixture(scope="session")
def page_file(whole: Review, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "review.html"
    path.write_text(page(whole, read=engine.disk_reader(whole.root)), encoding="utf-8")
    return path
