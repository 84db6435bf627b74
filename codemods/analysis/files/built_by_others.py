"""A cache that rank 0 writes, where a rank that does not find it builds what it holds for itself."""

from __future__ import annotations

import ast

from codemods.analysis.files.file_calls import Act, file_call
from codemods.analysis.files.file_paths import forms
from codemods.files.source import SourceModule, line_of, walk


def built_by_others(module: SourceModule, asked: ast.AST, written: ast.AST) -> bool:
    """True where `asked`, a question whether the file is there, decides between reading it and the arm that writes it at its end.

    A rank that asks too early makes all of it but the file. Nothing may read it behind the test.
    """
    test = next((up for up in module.ancestors(asked) if isinstance(up, ast.If)), None)
    path = file_call(module, asked) if isinstance(asked, ast.Call) else None
    if test is None or path is None or path.act is not Act.ASKS or not any(n is asked for n in walk(test.test)):
        return False
    arms = [arm for arm in (test.body, test.orelse) if any(n is written for s in arm for n in walk(s))]
    if len(arms) != 1 or not (test.body and test.orelse):
        return False
    return not any(_reads(module, call, forms(module, path.path), arms[0], test) for call in _calls_beside(module, test))


def _calls_beside(module: SourceModule, test: ast.If) -> list[ast.Call]:
    function = module.function_of(test)
    return [c for c in module.nodes(ast.Call) if module.function_of(c) is function and line_of(c) > line_of(test)]


def _reads(module: SourceModule, call: ast.Call, wanted: frozenset[str], arm: list[ast.stmt], test: ast.If) -> bool:
    found = file_call(module, call)
    if found is None or found.act not in (Act.READS, Act.LOADS) or not wanted & forms(module, found.path):
        return False
    other = test.orelse if arm is test.body else test.body
    return not any(n is call for s in other for n in walk(s))
