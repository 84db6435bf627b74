"""Guards of one test that stand one under the other are written as one, and only where that changes nothing."""

from __future__ import annotations

import ast
import textwrap

import pytest

from codemods.api.findings import Edit, InsertAfter, InsertBefore, Unwrap, WrapInGuard
from codemods.files.source import SourceModule
from codemods.rewriting.rewriter import rewrite

PATH = "module.py"
ZERO = "rank == 0"


def named(module: SourceModule, name: str) -> ast.stmt:
    return next(s for s in module.nodes(ast.Expr) if module.text_of(s).startswith(f"{name}("))


def guarded(source: str, *names: str, more: dict[str, type[Edit]] | None = None, test: str = ZERO, otherwise: str = "") -> str:
    """The source with each of these calls under the test. more: what else is done, by the call it is done at."""
    module = SourceModule(PATH, textwrap.dedent(source).encode())
    spans = [module.span(named(module, n)) for n in names]
    edits: list[Edit] = [WrapInGuard(PATH, at, test, at, otherwise=otherwise) for at in spans]
    for name, kind in (more or {}).items():
        statement = named(module, name)
        at = module.span(statement if kind is not Unwrap else module.statement_of(module.parent(statement) or statement))
        if issubclass(kind, Unwrap):
            edits.append(kind(PATH, at))
        else:
            assert issubclass(kind, (InsertAfter, InsertBefore))
            edits.append(kind(PATH, at, "wait()"))
    return rewrite(module, edits)


def check(before: str, after: str, *names: str) -> None:
    assert guarded(before, *names) == textwrap.dedent(after)


def test_two_new_ones() -> None:
    check("a()\nb()\nc()\n", "if rank == 0:\n    a()\n    b()\nc()\n", "a", "b")


def test_one_above_and_one_below_that_were_there() -> None:
    before = """\
        def f():
            if rank == 0:
                a()
            b()
            if rank  ==  0:
                c()
            d()
        """
    after = """\
        def f():
            if rank == 0:
                a()
                b()
            if rank  ==  0:
                c()
            d()
        """
    check(before, after, "b")  # the one below is spelled in another way: it is left as it is
    check(before.replace("  ==  ", " == "), after.replace("            if rank  ==  0:\n", ""), "b")


def test_over_a_gap_and_a_comment_that_is_of_the_lower_one() -> None:
    check("if rank == 0:\n    a()\n\nb()\n", "if rank == 0:\n    a()\n\n    b()\n", "b")
    before = "if rank == 0:\n    a()\n    # of a\n# of b\nb()\n\nc()\n"
    check(before, "if rank == 0:\n    a()\n    # of a\n    # of b\n    b()\n\nc()\n", "b")


@pytest.mark.parametrize(
    "source",
    [
        "if rank == 0:\n    a()\n# of b and c\nb()\nc()\n",
        "if rank == 0:\n    a()\n\n# a heading\nb()\n",
        "b()\n# of a\nif rank == 0:\n    a()\n",
        "if rank == 0:\n    a()\nelse:\n    c()\nb()\n",
        "if rank == 0: a()\nb()\n",
        "if rank == 0:  # the main one\n    a()\n    c()\nc()\nb()\nif rank == 0:  # the main one\n    a()\n",
        "if rank == 0:\n    a()\n    rank = c()\nb()\n",
        "if rank == 0:\n    dist.barrier()\nb()\n",
        "b()\nif rank == 0:\n    dist.barrier()\n",
        "if rank == 0:\n    dist.destroy_process_group()\nb()\n",
        "for x in y:\n    if rank == 0:\n        break\n    b()\n",
        "if (rank := ask()) == 0:\n    a()\nb()\n",
        "if rank == 0:\n    a()\nc()\nb()\n",
        "if rank == 1:\n    a()\nb()\n",
    ],
)
def test_what_keeps_them_apart(source: str) -> None:
    lines = source.splitlines()
    at = next(i for i, line in enumerate(lines) if line.strip() == "b()")
    indent = lines[at][: -len("b()")]
    lines[at : at + 1] = [f"{indent}if rank == 0:", f"{indent}    b()"]
    check(source, "\n".join(lines) + "\n", "b")


def test_what_goes_between_keeps_them_apart() -> None:
    between = "if rank == 0:\n    a()\nwait()\nif rank == 0:\n    b()\n"
    assert guarded("a()\nb()\n", "a", "b", more={"a": InsertAfter}) == between
    assert guarded("a()\nb()\n", "a", "b", more={"b": InsertBefore}) == between


def test_a_guard_that_goes_takes_none_in() -> None:
    assert guarded("if rank == 0:\n    a()\nb()\n", "b", more={"a": Unwrap}) == "a()\nif rank == 0:\n    b()\n"


def test_an_indentation_of_its_own_is_kept() -> None:
    check("def f():\n\tif rank == 0:\n\t\ta()\n\tb()\n", "def f():\n\tif rank == 0:\n\t\ta()\n\t\tb()\n", "b")


# A return in the place of a guard

WHOLE = 'def f():\n    """Shows."""\n\n    # of a\n    a()\n'


def test_the_function_is_left_above_what_is_all_it_does() -> None:
    wanted = 'def f():\n    """Shows."""\n\n    if rank != 0:\n        return\n    # of a\n    a()\n'
    assert guarded(WHOLE, "a", otherwise="rank != 0") == wanted


def test_the_function_is_not_left_where_more_follows_by_now() -> None:
    after = '    """Shows."""\n\n    # of a\n    if rank == 0:\n        a()\n    wait()\n'
    assert guarded(WHOLE, "a", more={"a": InsertAfter}, otherwise="rank != 0") == "def f():\n" + after
