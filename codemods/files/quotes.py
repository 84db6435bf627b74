"""The quotes of a file: a string that a fix writes takes those that the file uses most."""

from __future__ import annotations

import ast
import io
import tokenize

from codemods.api.findings import Span
from codemods.files.source import SourceModule, once_a_module
from codemods.runtime.lazy_pattern import lazy

_ENOUGH = 8  # strings of a file that show a habit
_BEGIN = lazy(r"[A-Za-z]{0,2}(?P<quotes>\"\"\"|'''|\"|')")


def with_its_quotes(module: SourceModule, code: str, place: Span) -> str:
    """`code`, which is written at a place, with its plain strings in the quotes of the file.

    What stands there already keeps its own, and so does all that is put into an f-string.
    """
    if '"' not in code or preferred_quote(module) == '"' or any(module.span(f).holds(place) for f in module.nodes(ast.JoinedStr)):
        return code
    old = module.text_at(place)
    try:
        strings = [t for t in tokenize.generate_tokens(io.StringIO(code).readline) if t.type == tokenize.STRING]
    except (tokenize.TokenError, IndentationError):
        return code
    lines = code.splitlines(keepends=True)
    for token in reversed(strings):
        if _may_turn(token.string) and token.string not in old:
            line, start = token.start[0] - 1, token.start[1]
            text = lines[line]
            lines[line] = f"{text[:start]}'{token.string[1:-1]}'{text[token.end[1] :]}"
    return "".join(lines)


def _may_turn(string: str) -> bool:
    """True for `"cpu"`; a prefix, another quote or a backslash in it leave a string as it is."""
    return string.startswith('"') and not string.startswith('"""') and not {"'", "\\"} & set(string)


@once_a_module
def preferred_quote(module: SourceModule) -> str:
    """The quote that most strings of a file stand in, docstrings and other long ones left out; the double one where few do."""
    counts = {"'": 0, '"': 0}
    strings = [*module.nodes(ast.JoinedStr), *(n for n in module.nodes(ast.Constant) if isinstance(n.value, str))]
    for line, column in {(s.line, s.column) for s in map(module.span, strings)}:
        found = _BEGIN.match(module.lines[line - 1], column)
        if found is not None and found["quotes"] in counts:
            counts[found["quotes"]] += 1
    return "'" if counts["'"] > counts['"'] and sum(counts.values()) >= _ENOUGH else '"'
