"""A function that is read for its truth alone is handed on to nobody: `if args.train:` asks for a setting."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.ranks.uses import uses_of
from codemods.store.project import Project

LOOP = """
class Loop:
    {mark}
    def train(self):
        self.step()
"""
STEPS = "def train(epochs):\n    print(epochs)\n"


@pytest.mark.parametrize(
    ("program", "used"),
    [
        pytest.param("def run(args):\n    if args.train:\n        go()\n", False, id="a test"),
        pytest.param("def run(args):\n    while not args.train and args.more:\n        go()\n", False, id="a part of a test"),
        pytest.param("def run(args):\n    return 'a' if args.train else 'b'\n", False, id="of an expression"),
        pytest.param("def run(args):\n    only = args.train == 1\n", False, id="held against a number"),
        pytest.param("def run(args):\n    off = not args.train\n", False, id="the opposite of it"),
        pytest.param("def run(args):\n    assert args.train, 'nothing to do'\n", False, id="asserted"),
        pytest.param("def run(tasks):\n    return [t.name for t in tasks if t.train]\n", False, id="of a comprehension"),
        pytest.param("def run(args):\n    go(args.train)\n", True, id="an argument"),
        pytest.param("def run(args):\n    step = args.step or args.train\n", True, id="what a name is given"),
        pytest.param("def run(args):\n    step = args.train if args.on else None\n", True, id="what a test chooses"),
        pytest.param("def run(tasks):\n    return [t.train for t in tasks]\n", True, id="collected"),
        pytest.param("def run(args):\n    if go(args.train):\n        stop()\n", True, id="an argument in a test"),
    ],
)
def test_a_tested_value_hands_on_no_method(program: str, used: bool) -> None:
    assert _is_used(LOOP.format(mark=""), program) is used


@pytest.mark.parametrize("mark", ["@property", "@cached_property"])
def test_a_property_is_run_where_it_is_read(mark: str) -> None:
    assert _is_used(LOOP.format(mark=mark), "def run(loop):\n    if loop.train:\n        go()\n")


@pytest.mark.parametrize(("body", "used"), [("if train:\n        go()", False), ("go(train)", True)])
def test_a_plain_function(body: str, used: bool) -> None:
    assert _is_used(STEPS, f"from steps import train\n\n\ndef run():\n    {body}\n") is used


def _is_used(source: str, program: str) -> bool:
    project = Project.of({"steps.py": source.encode(), "main.py": program.encode()})
    module = project.module("steps.py")
    assert module is not None
    found = uses_of(project, module, next(iter(module.nodes(ast.FunctionDef))))
    return bool(found.calls or found.handed_on)
