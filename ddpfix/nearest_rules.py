"""Which rules speak of what a statement speaks of: those that a reader would have thought of, where none says anything."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence
from math import log

from codemods.api.codemod import DdpCodemod
from codemods.files.nodes import called_name
from codemods.files.source import SourceModule
from codemods.files.spelling import own_names
from codemods.files.text_file import TextFile
from codemods.store.project import Project
from ddpfix.place_facts import statement_at

_WORD = re.compile(r"[A-Za-z_]\w{2,}")
_PART = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}")
_WHOLE = 1.5  # what a name as it is written counts, over a part of one
_CALLED = 0.5  # what a word of a function that the statement calls counts
_LONGEST = 40  # lines of such a function; a longer one speaks of too much
MOST = 3  # that are shown
_HEARD = 10  # that are asked what they say of the file while they judge others
_LEAST = 2.0  # a word of one rule in eight
# Words of every program, whatever it is about.
_PLAIN = frozenset(
    {"all", "and", "any", "append", "arg", "args", "call", "class", "config", "data", "def", "dict", "each", "elif", "else",
     "false", "file", "first", "for", "format", "from", "get", "import", "int", "item", "items", "key", "last", "len", "line",
     "list", "main", "make", "model", "name", "new", "none", "not", "old", "one", "opt", "option", "options", "out", "path",
     "print", "range", "return", "run", "self", "set", "str", "super", "the", "time", "true", "two", "use", "value", "values",
     "while", "with"}
)  # fmt: skip


def nearest(project: Project, codemods: Sequence[DdpCodemod], module: SourceModule, line: int) -> list[DdpCodemod]:
    """The rules whose descriptions share most of the rarer words of the statement, and of what it calls; the nearest first."""
    spoken = {c.code: _words(_says(c)) for c in codemods}
    rules = Counter(word for words in spoken.values() for word in words)
    here, there = _words(_text(module, line)), _words(_called(project, module, line))
    asked = {w for w in here | there if rules[w] and w not in _PLAIN}
    weights = {w: log(len(codemods) / rules[w]) * (_WHOLE if "_" in w else 1) * (1 if w in here else _CALLED) for w in asked}
    scored = [(sum(weights[w] for w in asked & spoken[c.code]), c) for c in codemods]
    near = sorted(((score, c) for score, c in scored if score >= _LEAST), key=lambda pair: (-pair[0], pair[1].code))
    return [c for _, c in near[:_HEARD]]


def missing_words(codemod: DdpCodemod, data: bytes) -> str:
    """The words without which the codemod does not look at the file; "" where it has one of each group."""
    spelled = own_names(data)
    for group in codemod.TRIGGERS:
        if not any(word in spelled for word in group):
            return " or ".join(f"`{word.decode(errors='replace').strip()}`" for word in group[:4])
    return ""


def _says(codemod: DdpCodemod) -> str:
    return f"{codemod.rule_name()} {codemod.summary()} {codemod.sections().get('What it does', '')}"


def _text(module: SourceModule, line: int) -> str:
    """The header of the statement at the line."""
    statement = None if isinstance(module, TextFile) else statement_at(module, line)
    if statement is None or isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return module.lines[line - 1] if line <= len(module.lines) else ""
    body = getattr(statement, "body", None)
    last = body[0].lineno - 1 if isinstance(body, list) and body else statement.end_lineno or statement.lineno
    return "\n".join(module.lines[statement.lineno - 1 : max(last, statement.lineno)])


def _called(project: Project, module: SourceModule, line: int) -> str:
    """The functions that the statement calls, where the project defines one alone of the name."""
    statement = None if isinstance(module, TextFile) else statement_at(module, line)
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call) and n.lineno == line] if statement is not None else []
    texts = []
    for name in {called_name(c) for c in calls} - {""}:
        homes = [m for p in project.files_containing(f"def {name}(".encode())[:_LONGEST] if (m := project.module(p)) is not None]
        found = [(m, f) for m in homes for f in m.functions if f.name == name]
        texts += [m.text_of(f) for m, f in found if len(found) == 1 and (f.end_lineno or 0) - f.lineno < _LONGEST]
    return "\n".join(texts)


def _words(text: str) -> set[str]:
    whole = set(_WORD.findall(text))
    return {w.lower() for w in whole} | {p.lower() for w in whole for p in _PART.findall(w)}
