from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = shutil.which("chromium", path="/usr/bin") or shutil.which("chromium") or shutil.which("chromium-browser")


def pytest_configure() -> None:
    """A shell starts what it puts in the background with Ctrl-C ignored, and so would every program be that a test interrupts.

    And hundreds of tests start `ddpfix`: where no bytecode may be written, each of them compiles it again, for most of its time.
    So would each worker, with the tests whose assertions pytest rewrites: half of the time in which it collects them.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Twenty thousand tests and their modules stay until the end: the collector need not go through them again and again.

    With trees of syntax made and dropped in each test it took a twelfth of the time of the suite.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the tester's own cache. For all tests at once: there are twenty thousand."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DDPFIX_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "ddpfix-cache"))
        yield


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, without its sandbox: tests run as root in containers. One of a process: it takes no second driver."""
    if not CHROMIUM:
        pytest.skip("no Chromium here: `apt-get install chromium`")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()
