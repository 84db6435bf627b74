"""Answers of a project are kept under keys that begin with a text: two functions under one text read each other's answers."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

CODEMODS = Path(__file__).parents[1] / "codemods"


def kept(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """The text that each key begins with, and the line of the call; a key may have a name of its own in its function."""
    for function in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
        named = {
            n.targets[0].id: n.value
            for n in ast.walk(function)
            if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)
        }
        for call in (n for n in ast.walk(function) if isinstance(n, ast.Call)):
            if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("keep", "memo") or len(call.args) != 2:
                continue
            key = call.args[0]
            key = named.get(key.id, key) if isinstance(key, ast.Name) else key
            first = key.elts[0] if isinstance(key, ast.Tuple) else key
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value, call.lineno


def test_no_two_files_keep_answers_under_one_text() -> None:
    found: dict[str, set[str]] = defaultdict(set)
    for path in CODEMODS.rglob("*.py"):
        for text, _ in kept(ast.parse(path.read_text(encoding="utf-8"))):
            found[text].add(path.relative_to(CODEMODS).as_posix())
    assert len(found) > 200  # the keys are seen at all
    assert {text: files for text, files in found.items() if len(files) > 1} == {}


def test_keys_are_read_from_calls_and_from_names() -> None:
    one = "def f(project):\n    key = ('texts of files', 1)\n    return project.keep(key, list)\n"
    assert list(kept(ast.parse(one))) == [("texts of files", 3)]
    assert list(kept(ast.parse("def f(project):\n    return project.memo('texts', list)\n"))) == [("texts", 2)]
