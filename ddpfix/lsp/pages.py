"""The page of a codemod as a file in the user's cache folder, for editors to open: it is there without a network."""

from __future__ import annotations

from pathlib import Path

from ddpfix import answers, explain, plugins
from ddpfix.catalog import UnknownSelector
from ddpfix.lsp.places import uri_of

_written: dict[str, str] = {}  # code -> URI; "" where there is no page


def page_text(code: str) -> str:
    """The rule's text in Markdown, "" for a code without one."""
    try:
        return explain.page(plugins.lookup(code))
    except UnknownSelector:
        return ""


def page_uri(code: str) -> str:
    """Where the rule's text can be opened, "" where it has none or it cannot be written."""
    if code not in _written:
        _written[code] = _write(code)
    return _written[code]


def _write(code: str) -> str:
    text = page_text(code)
    file = Path(answers.folder()) / "rules" / f"{code}.md"
    if not text or "/" in code:
        return ""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError:
        return ""
    return uri_of(file.absolute())
