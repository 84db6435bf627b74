"""The pages that are made from the code are what the code says; every link in the documentation leads somewhere."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from ddpfix.catalog import all_codemods

ROOT = Path(__file__).parent.parent
TOP = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
PAGES = [*(ROOT / name for name in TOP), *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_generated_pages_are_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("make_docs", ROOT / "docs" / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.stale() == [], "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_every_link_leads_to_a_file(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    links = [m for m in re.findall(r"\]\(([^)#\s]+)\)", text) if "://" not in m]
    assert [m for m in links if not (page.parent / m).exists()] == []


@pytest.mark.parametrize("name", TOP)
def test_every_link_into_a_page_leads_to_a_heading(name: str) -> None:
    """Of the pages of the root, which a forge shows; tests/site follows those of the site."""
    links = re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", (ROOT / name).read_text(encoding="utf-8"))
    assert [f"{path}#{place}" for path, place in links if place not in headings(ROOT / (path or name))] == []


def headings(page: Path) -> set[str]:
    """The anchors that a forge gives the headings of a page."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_changelog_names_every_codemod() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert [c.code for c in all_codemods() if c.code not in text] == []
