"""The product's own phrases that must not come back: plain technical English wherever a user reads."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ddpfix.catalog import all_codemods

ROOT = Path(__file__).parent.parent
# the phrase, and the standard word
PHRASES = {
    r"told|tells?|telling": "reported, reports",
    r"on paper": "abstract interpretation",
    r"make room|makes room": "evict",
    r"natures?": "ownership",
    r"worsened": "regression",
    r"mend(?:s|ed|ing)?": "fix",
    r"troubles?": "error",
    r"spoken": "strip_docstrings",
    r"hand-made words?": "names the user gave",
}
_ANY = re.compile("|".join(rf"\b(?:{phrase})\b" for phrase in PHRASES), re.I)
_NO_TEXT = re.compile(r"```.*?```|`[^`\n]*`|\]\([^)]*\)", re.S)  # code and links
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name != "architecture.md"),  # it names files
]
MODULES = sorted(path for package in ("ddpfix", "codemods") for path in (ROOT / package).rglob("*.py"))


def wrong(text: str) -> list[str]:
    plain = _NO_TEXT.sub(" ", text)
    return [plain[max(0, m.start() - 30) : m.end() + 30].replace("\n", " ") for m in _ANY.finditer(plain)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_page_has_a_phrase_of_our_own(page: Path) -> None:
    assert wrong(page.read_text(encoding="utf-8")) == []


def test_no_codemod_describes_itself_in_one() -> None:
    assert {c.code: found for c in all_codemods() if (found := wrong(type(c).__doc__ or ""))} == {}


def messages(path: Path) -> Iterator[ast.Constant]:
    """The texts of a module that a user may read: those with a blank in them, without docstrings."""
    tree = ast.parse(path.read_bytes())
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    first = (node.body[0] for node in ast.walk(tree) if isinstance(node, owners) and node.body)
    docs = {id(statement.value) for statement in first if isinstance(statement, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs and " " in node.value.strip():
            yield node


def test_no_message_has_one() -> None:
    texts = ((path, node) for path in MODULES for node in messages(path))
    assert {f"{p.relative_to(ROOT)}:{n.lineno}": bad for p, n in texts if (bad := wrong(str(n.value)))} == {}


def test_the_glossary_is_short() -> None:
    rows = re.findall(r"^\| (?!Word|---)", (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"), re.M)
    assert 10 <= len(rows) <= 20
