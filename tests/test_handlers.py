"""Which handler may catch what a call raises."""

from __future__ import annotations

import ast
import textwrap

import pytest

from codemods.analysis.handlers import handler_over, kinds_of, takes
from codemods.files.source import SourceModule


def over(source: str, *names: str) -> str:
    """The first line of the body of the handler that takes one of `names` from `work()`; "" for none."""
    module = SourceModule("a.py", textwrap.dedent(source).encode())
    found = handler_over(module, module.calls_named("work")[0], names)
    return ast.unparse(found.body[0]) if found is not None else ""


def attempt(kind: str, body: str = "work()") -> str:
    return f"try:\n    {body}\nexcept{kind}:\n    here()\n"


@pytest.mark.parametrize("kind", ["", " OSError", " builtins.OSError", " (ValueError, OSError) as error"])
def test_the_handler_takes_it(kind: str) -> None:
    assert over(attempt(kind), "OSError") == "here()"


@pytest.mark.parametrize("kind", [" ValueError", " (ValueError, KeyError)", " errors()"])
def test_the_handler_is_for_others(kind: str) -> None:
    assert over(attempt(kind), "OSError") == ""


def test_only_what_stands_in_the_body_is_tried() -> None:
    assert over("try:\n    a()\nexcept OSError:\n    work()\n", "OSError") == ""
    assert over("try:\n    a()\nexcept OSError:\n    b()\nelse:\n    work()\n", "OSError") == ""
    assert over("try:\n    def f():\n        work()\nexcept OSError:\n    b()\n", "OSError") == ""
    assert over(attempt(" OSError", "retry(lambda: work())"), "OSError") == "here()"


def test_the_innermost_that_takes_it_wins() -> None:
    inner = textwrap.indent(attempt(" OSError"), "    ")
    whole = f"try:\n{inner}except Exception:\n    outside()\n"
    assert over(whole, "OSError", "Exception") == "here()"
    assert over(whole, "Exception") == "outside()"


def test_a_bare_one_names_nothing_and_takes_all() -> None:
    tree = ast.parse(attempt(""))
    (handler,) = (n for n in ast.walk(tree) if isinstance(n, ast.ExceptHandler))
    assert kinds_of(handler) == []
    assert takes(handler, ())
