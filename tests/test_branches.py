"""Which tests decide whether a place is come to, and how they have to come out."""

from __future__ import annotations

import ast
import textwrap

import pytest

from codemods.analysis.branches import LOOPS, branches_round, exits_above, ifs_round, leading_tests
from codemods.files.source import SourceModule

ALL = (ast.If, ast.IfExp, ast.While)


def place(code: str) -> tuple[SourceModule, ast.Call]:
    module = SourceModule("a.py", textwrap.dedent(code).encode())
    return module, next(c for c in module.nodes(ast.Call) if module.text_of(c) == "here()")


def leading(code: str) -> list[str]:
    module, here = place(code)
    return [("" if holds else "not ") + module.text_of(test) for test, holds in leading_tests(module, here)]


@pytest.mark.parametrize(
    ("code", "tests"),
    [
        ("if a:\n    here()", ["a"]),
        ("if a:\n    pass\nelse:\n    here()", ["not a"]),
        ("if a:\n    pass\nelif b:\n    here()", ["b", "not a"]),
        ("if here():\n    pass", []),
        ("x = here() if a else 0", ["a"]),
        ("x = 0 if a else here()", ["not a"]),
        ("while a:\n    here()", ["a"]),
        ("for i in a:\n    if i:\n        continue\n    here()", ["not i"]),
        ("if a:\n    def f():\n        here()", []),
        ("def f():\n    if a:\n        return\n    with b:\n        if c:\n            here()", ["c", "not a"]),
        ("def f():\n    if a:\n        print()\n    here()", []),
        ("def f():\n    here()\n    if a:\n        return", []),
    ],
)
def test_what_leads_to_a_place(code: str, tests: list[str]) -> None:
    assert leading(code) == tests


def test_as_far_as_a_loop() -> None:
    module, here = place("if a:\n    for i in x:\n        if b:\n            here()")
    assert [module.text_of(up.test) for up in ifs_round(module, here)] == ["b", "a"]
    assert [module.text_of(up.test) for up in ifs_round(module, here, until=LOOPS)] == ["b"]
    assert [b.holds for b in branches_round(module, here, kinds=ALL)] == [True, True]
    assert not list(exits_above(module, here))
