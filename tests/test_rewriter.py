"""Each word of an edit, alone and beside others, in every shape of file that Python reads."""

from __future__ import annotations

import ast
import contextlib
import textwrap

import pytest

from codemods.api.findings import (
    AddComment,
    AddDecorator,
    DropDecorator,
    DropImport,
    DropKeyword,
    Edit,
    InsertAfter,
    InsertBefore,
    NeedImport,
    RemoveStatement,
    ReplaceExpression,
    SetKeyword,
    Unwrap,
    WrapInGuard,
)
from codemods.files.source import SourceModule, Unreadable
from codemods.rewriting.rewriter import RewriteError, replacements, rewrite, rewrite_bytes, with_deep_stack
from tests.places import PATH, call, module_of, node, span, statement, written


def check(got: str, wanted: str) -> None:
    assert got == textwrap.dedent(wanted)


def guarded(source: str, first: str, last: str = "", *, test: str = "rank == 0") -> str:
    module = module_of(source)
    begin, end = statement(module, first), statement(module, last or first)
    return written(module, WrapInGuard(PATH, begin, test, end))


def with_keyword(source: str, text: str, name: str = "b", value: str = "2") -> str:
    module = module_of(source)
    return written(module, SetKeyword(PATH, call(module, text), name, value))


# The words


def test_a_keyword_is_added_behind_the_last_argument() -> None:
    assert with_keyword("f(a)\n", "f(") == "f(a, b=2)\n"


def test_a_keyword_of_that_name_is_given_the_value() -> None:
    assert with_keyword("f(a, b = 1, c=3)  # why\n", "f(") == "f(a, b = 2, c=3)  # why\n"


def test_two_edits_of_one_call_are_both_made() -> None:
    module = module_of("f(a, old=1)\n")
    at = call(module, "f(")
    assert written(module, SetKeyword(PATH, at, "b", "2"), DropKeyword(PATH, at, "old")) == "f(a, b=2)\n"


def test_a_keyword_that_is_not_there_cannot_be_dropped() -> None:
    module = module_of("f(a)\n")
    with pytest.raises(RewriteError, match="no argument old"):
        written(module, DropKeyword(PATH, call(module, "f("), "old"))


def test_nested_calls_are_both_edited_in_one_run() -> None:
    module = module_of("x = outer(inner(1), other(deep(2)))\n")
    edits = [SetKeyword(PATH, call(module, name), "k", name[0]) for name in ("outer(", "inner(", "other(", "deep(")]
    assert written(module, *edits) == "x = outer(inner(1, k=i), other(deep(2, k=d), k=o), k=o)\n"
    assert len(with_deep_stack(lambda: replacements(module, edits))) == 1


def test_the_order_of_edits_does_not_matter() -> None:
    module = module_of("def f():\n    x = outer(inner(1))\n    y = 2\n")
    edits: list[Edit] = [
        SetKeyword(PATH, call(module, "outer("), "a", "1"),
        SetKeyword(PATH, call(module, "inner("), "b", "2"),
        WrapInGuard(PATH, statement(module, "x ="), "r", statement(module, "x =")),
        AddDecorator(PATH, statement(module, "def"), "once"),
    ]
    assert written(module, *edits) == written(module, *reversed(edits))


def test_the_same_edit_twice_is_made_once() -> None:
    module = module_of("f(a)\n")
    edit = InsertAfter(PATH, statement(module, "f("), "g()")
    assert written(module, edit, edit) == "f(a)\ng()\n"


def test_no_edits_no_change() -> None:
    module = module_of("f( a )\n")
    assert rewrite(module, []) == "f( a )\n"
    assert replacements(module, []) == []


@pytest.mark.parametrize(
    ("source", "old", "code", "wanted"),
    [
        ("x = f(a)\n", "f(a)", "g(a)", "x = g(a)\n"),
        ("x = f(a).item()\n", "f(a)", "a or b", "x = (a or b).item()\n"),
        ("x = f(a) or b\n", "f(a)", "a and b", "x = (a and b) or b\n"),
        ("x = f(a) or b\n", "f(a)", "a + b", "x = (a + b) or b\n"),
        ("x = a + b + c\n", "a + b", "d + e", "x = d + e + c\n"),
        ("x = a * b + c\n", "a * b", "d + e", "x = (d + e) + c\n"),
        ("x = -f(a)\n", "f(a)", "b ** 2", "x = -(b ** 2)\n"),
        ("x = (f(a))\n", "f(a)", "b if c else d", "x = (b if c else d)\n"),
        ("x = f(a)\n", "f(a)", "b if c else d", "x = b if c else d\n"),
        ("g(f(a), k=f(a))\n", "f(a)", "b if c else d", "g(b if c else d, k=f(a))\n"),
        ("x = [f(a), *f(b)]\n", "f(b)", "c or d", "x = [f(a), *(c or d)]\n"),
        ("x = f(a)\n", "f(a)", "lambda: 1", "x = lambda: 1\n"),
        ("f(a)\n", "f(a)", "(y := 1)", "(y := 1)\n"),
        ("if f(a): pass\n", "f(a)", "a, b", "if (a, b): pass\n"),
        ("x = (1, 2)\n", "(1, 2)", "y", "x = y\n"),
        ("x = (i for i in y)\n", "(i for i in y)", "z", "x = z\n"),
        ("x = 'a' 'b'\n", "'a' 'b'", "c", "x = c\n"),
        ("del f(a)[0]\n", "f(a)", "await_", "del await_[0]\n"),
    ],
)
def test_an_expression_is_replaced_and_keeps_to_itself(source: str, old: str, code: str, wanted: str) -> None:
    module = module_of(source)
    got = written(module, ReplaceExpression(PATH, span(module, old, ast.expr), code))
    assert got == wanted


def test_what_replaces_an_expression_means_the_same_in_every_place() -> None:
    """The new tree is the old one with the node exchanged, whatever operator is round it."""
    places = ["-f()", "f() + 1", "1 - f()", "f() ** 2", "not f()", "f() < 1", "f() and a", "a or f()", "f().b", "f()[0]", "f()()",
              "b if f() else c", "[i for i in f() if f()]", "lambda: f()", "{f(): f()}", "{**f()}", "g(*f(), **f())",
              "a[f():f()]",
              "(yield f())", "(x := f())", "[f(), *f()]", "f() if a else f()", "await_[f(),]", "(f(), 1)"]  # fmt: skip
    codes = ["a", "a.b", "a + b", "a ** b", "-a", "not a", "a < b", "a and b", "a or b", "b if a else c", "lambda: a", "(a, b)"]
    for place in places:
        for code in codes:
            module = module_of(f"def h():\n    z = {place}\n")
            for target in [c for c in module.calls_named("f") if module.text_of(c) == "f()"]:
                got = written(module, ReplaceExpression(PATH, module.span(target), code))
                wanted = ast.dump(_exchanged(module, target, code))
                assert ast.dump(ast.parse(got)) == wanted, (place, code, got)


def _exchanged(module: SourceModule, target: ast.AST, code: str) -> ast.Module:
    class Exchange(ast.NodeTransformer):
        def visit_Call(self, found: ast.Call) -> ast.AST:
            here = found.lineno == target.lineno and found.col_offset == target.col_offset  # type: ignore[attr-defined]
            ends = found.end_col_offset == target.end_col_offset  # type: ignore[attr-defined]
            return ast.parse(code, mode="eval").body if here and ends else self.generic_visit(found)

    tree: ast.Module = Exchange().visit(ast.parse(module.text))
    return tree


def test_a_decorator_goes_next_to_the_def() -> None:
    module = module_of("""\
        class A:
            # about f
            @staticmethod
            # between
            async def f(x): return x
        """)
    got = written(module, AddDecorator(PATH, statement(module, "async def"), "only(0)"))
    check(
        got,
        """\
        class A:
            # about f
            @staticmethod
            @only(0)
            # between
            async def f(x): return x
        """,
    )


def test_a_decorator_is_dropped_by_its_text() -> None:
    module = module_of("@a\n@b.c(1)  # why\n@d\ndef f(): pass\n")
    assert written(module, DropDecorator(PATH, statement(module, "def"), "b.c(1)")) == "@a\n@d\ndef f(): pass\n"
    with pytest.raises(RewriteError, match="DropDecorator"):
        written(module, DropDecorator(PATH, statement(module, "def"), "zz"))


def test_a_decorator_on_a_nested_function_inside_an_edited_one() -> None:
    module = module_of("def f():\n  def g():\n    return 1\n  return g\n")
    got = written(
        module,
        AddDecorator(PATH, statement(module, "def f"), "a"),
        AddDecorator(PATH, statement(module, "def g"), "b"),
    )
    assert got == "@a\ndef f():\n  @b\n  def g():\n    return 1\n  return g\n"


def test_insertions_stand_round_the_guard() -> None:
    module = module_of("def f():\n    # note\n    a()\n    b()\n    c()\n")
    first, last = statement(module, "a("), statement(module, "b(")
    got = written(
        module,
        WrapInGuard(PATH, first, "r", last),
        InsertBefore(PATH, first, "x()"),
        InsertAfter(PATH, last, "y()"),
        InsertAfter(PATH, first, "m()"),
    )
    check(got, "def f():\n    # note\n    x()\n    if r:\n        a()\n        m()\n        b()\n    y()\n    c()\n")


def test_inserted_blocks_take_the_step_of_the_file() -> None:
    module = module_of("def f():\n  if a:\n    b()\n")
    got = written(module, InsertAfter(PATH, statement(module, "b("), "if x:\n    while y:\n        z()\n"))
    assert got == "def f():\n  if a:\n    b()\n    if x:\n      while y:\n        z()\n"


def test_a_statement_is_removed_inside_an_edited_one() -> None:
    module = module_of("def f():\n    a()\n\n    # gone\n    b()\n    c()\n")
    got = written(module, AddDecorator(PATH, statement(module, "def"), "d"), RemoveStatement(PATH, statement(module, "b(")))
    assert got == "@d\ndef f():\n    a()\n\n    c()\n"


def test_removing_the_only_statement_leaves_pass() -> None:
    source = "if a:\n    b()\nelse:\n\tc()\n"
    module = module_of(source)
    assert written(module, RemoveStatement(PATH, statement(module, "b("))) == "if a:\n    pass\nelse:\n\tc()\n"
    assert written(module, RemoveStatement(PATH, statement(module, "c("))) == "if a:\n    b()\nelse:\n\tpass\n"


def test_removing_every_statement_of_a_block_leaves_one_pass() -> None:
    module = module_of("for x in y:\n  a()\n\n  b()\n  # c\n  c()\nd()\n")
    edits = [RemoveStatement(PATH, statement(module, f"{n}(")) for n in "abc"]
    assert written(module, *edits) == "for x in y:\n  pass\nd()\n"
    nested = [*edits, AddComment(PATH, statement(module, "for"), ("why",))]
    assert written(module, *nested) == "# why\nfor x in y:\n  pass\nd()\n"


def test_removing_all_of_a_handler_and_of_a_case() -> None:
    module = module_of("try:\n    a()\nexcept E:\n    b()\nfinally:\n    c()\n")
    got = written(module, *[RemoveStatement(PATH, statement(module, f"{n}(")) for n in "abc"])
    assert got == "try:\n    pass\nexcept E:\n    pass\nfinally:\n    pass\n"
    module = module_of("match a:\n    case 1:\n        b()\n    case _:\n        c()\n")
    assert "case 1:\n        pass\n" in written(module, RemoveStatement(PATH, statement(module, "b(")))


def test_a_comment_above_a_statement_and_above_an_argument() -> None:
    module = module_of("def f():\n    t = T(\n        a=1,\n        b=2,\n    )\n")
    at = call(module, "T(")
    got = written(module, AddComment(PATH, statement(module, "t ="), ("one", "", "two")), AddComment(PATH, at, ("why",), "b"))
    check(got, "def f():\n    # one\n    #\n    # two\n    t = T(\n        a=1,\n        # why\n        b=2,\n    )\n")


def test_a_comment_for_an_argument_that_shares_its_line_goes_above_the_statement() -> None:
    module = module_of("def f():\n    if x: return g(T(a=1, b=2))\n")
    got = written(module, AddComment(PATH, call(module, "T("), ("why",), "b"), SetKeyword(PATH, call(module, "T("), "b", "3"))
    assert got == "def f():\n    # why\n    if x: return g(T(a=1, b=3))\n"


def test_a_comment_for_the_first_argument() -> None:
    module = module_of("T(\n    b=2,\n)\n")
    assert written(module, AddComment(PATH, call(module, "T("), ("why",), "b")) == "T(\n    # why\n    b=2,\n)\n"


def test_unwrapping_keeps_every_comment() -> None:
    module = module_of("""\
        def f():
            # above
            if rank == 0:  # only there
                # first
                a()
                b()
                # last
            c()
        """)
    check(
        written(module, Unwrap(PATH, statement(module, "if"))),
        """\
        def f():
            # above
            # only there
            # first
            a()
            b()
            # last
            c()
        """,
    )


def test_unwrapping_the_last_statement_of_a_function() -> None:
    module = module_of("def f():\n  if r:\n    a()\n    # end\nb()\n")
    assert written(module, Unwrap(PATH, statement(module, "if"))) == "def f():\n  a()\n  # end\nb()\n"


def test_unwrapping_one_line() -> None:
    module = module_of("if r: a(); b()  # both\n")
    assert written(module, Unwrap(PATH, statement(module, "if"))) == "a(); b()  # both\n"


def test_an_if_with_an_else_is_not_unwrapped() -> None:
    module = module_of("if r:\n    a()\nelse:\n    b()\n")
    with pytest.raises(RewriteError, match="without else"):
        written(module, Unwrap(PATH, statement(module, "if")))


# Guards


def test_a_guard_over_neighbours_with_blank_lines_and_comments() -> None:
    check(
        guarded("def f():\n    # why\n    a()\n\n    # between\n    b()  # behind\n    c()\n", "a(", "b("),
        "def f():\n    # why\n    if rank == 0:\n        a()\n\n        # between\n        b()  # behind\n    c()\n",
    )


def test_a_guard_takes_the_comment_on_its_first_statement_along_where_it_is_told_to() -> None:
    source = "def f():\n    # part\n\n    # why\n    # at all\n    a()\n    b()\n"
    module = SourceModule(PATH, source.encode())
    first, last = statement(module, "a("), statement(module, "b(")
    check(
        written(module, WrapInGuard(PATH, first, "rank == 0", last, comments_inside=True)),
        "def f():\n    # part\n\n    if rank == 0:\n        # why\n        # at all\n        a()\n        b()\n",
    )


def test_a_guard_takes_comments_at_the_end_of_a_loop_along() -> None:
    check(
        guarded("for x in y:\n    a()\n    # end of loop\n\n# about b\nb()\n", "for"),
        "if rank == 0:\n    for x in y:\n        a()\n        # end of loop\n\n# about b\nb()\n",
    )


@pytest.mark.parametrize("step", ["  ", "   ", "    ", "\t"])
def test_a_guard_deep_inside_takes_the_step_of_the_file(step: str) -> None:
    lines = ["class A:", f"{step}def f(self):", f"{step * 2}with x:", f"{step * 3}a(1,", f"{step * 3}  2)", f"{step * 3}b()"]
    got = guarded("\n".join(lines) + "\n", "a(")
    wanted = [*lines[:3], f"{step * 3}if rank == 0:", f"{step * 4}a(1,", f"{step * 4}  2)", lines[5]]
    assert got == "\n".join(wanted) + "\n"


def test_a_guard_leaves_the_text_of_strings_alone() -> None:
    source = 'def f():\n    a("""one\n  two\n""", f"""{x}\n three""")\n    b()\n'
    wanted = 'def f():\n    if rank == 0:\n        a("""one\n  two\n""", f"""{x}\n three""")\n    b()\n'
    assert guarded(source, "a(") == wanted


def test_a_guard_moves_lines_that_a_backslash_continues() -> None:
    source = "def f():\n  with a as b, \\\n       c as d:\n    e = 1 + \\\n      2\n"
    wanted = "def f():\n  if rank == 0:\n    with a as b, \\\n         c as d:\n      e = 1 + \\\n        2\n"
    assert guarded(source, "with") == wanted


def test_a_guard_over_lines_that_hang_to_the_left() -> None:
    source = "def f():\n    a(\n1,\n  # left\n2)\n"
    assert guarded(source, "a(") == "def f():\n    if rank == 0:\n        a(\n1,\n  # left\n2)\n"


def test_nested_guards_by_two_edits() -> None:
    module = module_of("for x in y:\n    a()\n    b()\n")
    outer, inner = statement(module, "for"), statement(module, "b(")
    got = written(module, WrapInGuard(PATH, outer, "p", outer), WrapInGuard(PATH, inner, "q", inner))
    assert got == "if p:\n    for x in y:\n        a()\n        if q:\n            b()\n"


def test_a_guard_round_a_decorated_function_and_a_class() -> None:
    assert guarded("@d\ndef f():\n    pass\n", "def") == "if rank == 0:\n    @d\n    def f():\n        pass\n"
    assert guarded("@d\nclass A:\n    x = 1\n", "class") == "if rank == 0:\n    @d\n    class A:\n        x = 1\n"


def test_edits_inside_a_guard_are_made() -> None:
    module = module_of("import x\nif a:\n    f(1)\n    g(h(2))\n    k()\n")
    got = written(
        module,
        WrapInGuard(PATH, statement(module, "f("), "r", statement(module, "k(")),
        SetKeyword(PATH, call(module, "h("), "s", "3"),
        RemoveStatement(PATH, statement(module, "k(")),
        AddComment(PATH, statement(module, "g("), ("why",)),
    )
    assert got == "import x\nif a:\n    if r:\n        f(1)\n        # why\n        g(h(2, s=3))\n"


def test_a_guard_whose_end_is_in_another_block_is_an_error() -> None:
    module = module_of("if x:\n    a()\nb()\n")
    with pytest.raises(RewriteError, match=r"no whole statement|WrapInGuard"):
        written(module, WrapInGuard(PATH, statement(module, "a("), "r", statement(module, "b(")))


# Semicolons, colons, elif


def test_one_of_several_statements_on_a_line() -> None:
    source = "if x:\n  # top\n  a(); b(); c()  # all\n  d()\n"
    assert guarded(source, "b(") == "if x:\n  # top\n  a()\n  if rank == 0:\n    b()\n  c()  # all\n  d()\n"
    assert guarded(source, "a(", "c(") == "if x:\n  # top\n  if rank == 0:\n    a(); b(); c()  # all\n  d()\n"
    assert guarded(source, "c(", "d(") == "if x:\n  # top\n  a()\n  b()\n  if rank == 0:\n    c()  # all\n    d()\n"


def test_a_line_of_several_statements_at_the_top_level() -> None:
    source = "a(); b()\n"
    assert guarded(source, "b(") == "a()\nif rank == 0:\n    b()\n"
    assert with_keyword(source, "b(") == "a(); b(b=2)\n"
    module = module_of(source)
    assert written(module, RemoveStatement(PATH, statement(module, "a("))) == "b()\n"
    assert written(module, RemoveStatement(PATH, statement(module, "b("))) == "a()\n"
    assert written(module, InsertAfter(PATH, statement(module, "a("), "x()")) == "a()\nx()\nb()\n"
    assert written(module, InsertBefore(PATH, statement(module, "a("), "x()")) == "x()\na(); b()\n"


def test_two_of_three_statements_on_a_line_are_removed() -> None:
    module = module_of("a(); b(); c();\nd()\n")
    edits = [RemoveStatement(PATH, statement(module, n)) for n in ("a(", "b(")]
    assert written(module, *edits) == "c()\nd()\n"
    both = [*edits, RemoveStatement(PATH, statement(module, "c("))]
    assert written(module, *both) == "d()\n"


def test_a_line_that_begins_where_a_string_ends() -> None:
    source = 'x = """a\nb"""; f(1)\ng()\n'
    assert with_keyword(source, "f(") == 'x = """a\nb"""; f(1, b=2)\ng()\n'
    assert guarded(source, "f(") == 'x = """a\nb"""\nif rank == 0:\n    f(1)\ng()\n'


def test_a_semicolon_and_a_backslash() -> None:
    source = "a(); \\\nb()\nc()\n"
    assert with_keyword(source, "b(") == "a(); \\\nb(b=2)\nc()\n"
    assert guarded(source, "b(") == "a()\nif rank == 0:\n    b()\nc()\n"


def test_the_body_behind_a_colon() -> None:
    source = "def f():\n  if x: a(); b()  # two\n  else: c()\n"
    assert guarded(source, "b(") == "def f():\n  if x:\n    a()\n    if rank == 0:\n      b()  # two\n  else: c()\n"
    assert guarded(source, "c(") == "def f():\n  if x: a(); b()  # two\n  else:\n    if rank == 0:\n      c()\n"
    module = module_of(source)
    got = written(module, RemoveStatement(PATH, statement(module, "c(")))
    assert got == "def f():\n  if x: a(); b()  # two\n  else:\n    pass\n"


def test_the_body_behind_a_colon_and_a_backslash() -> None:
    assert with_keyword("if x: \\\n  a()\nb()\n", "a(") == "if x: \\\n  a(b=2)\nb()\n"
    assert guarded("if x: \\\n  a()\nb()\n", "a(").startswith("if x:\n")


def test_an_elif_climbs_to_its_if() -> None:
    source = "def f():\n    if p(1):\n        a()\n    elif q(2):\n        b()\n    elif r(3): c()\n    else:\n        d()\n"
    assert with_keyword(source, "q(") == source.replace("q(2)", "q(2, b=2)")
    assert with_keyword(source, "r(") == source.replace("r(3)", "r(3, b=2)")
    assert guarded(source, "b(") == source.replace("        b()", "        if rank == 0:\n            b()")


def test_an_if_in_an_else_is_no_elif() -> None:
    source = "if a:\n    b()\nelse:\n    if c:\n        d()\n"
    assert guarded(source, "if c") == "if a:\n    b()\nelse:\n    if rank == 0:\n        if c:\n            d()\n"


@pytest.mark.parametrize(
    "source",
    [
        "for x in f(1): pass\nelse: pass\n",
        "async def g():\n    async with f(1) as x, y: pass\n    async for z in q: await f(1)\n    return [i async for i in y]\n",
        "while (n := f(1)) > 0: n -= 1\n",
        "x = lambda a=f(1), *b, **c: f\n",
        "match f(1):\n    case {'a': [x, *_]} if x > 0: pass\n    case A(b=1) | None: pass\n",
        "try: f(1)\nexcept* (A, B) as e: pass\n",
        "class A(f(1), metaclass=M): x: int = 3\n",
        "@f(1)\ndef g(a, /, b, *, c=3) -> int: ...\n",
        "x = [y for y in f(1) if y]\n",
        "print(f'{x!r:>{w}}', f(1))\n",
        "assert f(1), 'm'; raise E from f\n",
        "global_ = x if f(1) else y\n",
        "x[f(1):2, ...] = -3j\n",
        "def g():\n    yield from f(1)\n",
        "a = b = f(1)\na += 1\ndel a\n",
        "with (f(1) as x, y as z,): pass\n",
        "return_ = not f(1) in (1,)\n",
    ],
)
def test_a_call_in_every_statement(source: str) -> None:
    assert with_keyword(source, "f(1)") == source.replace("f(1)", "f(1, b=2)", 1)


# Imports


@pytest.mark.parametrize(
    ("source", "name", "wanted"),
    [
        ("import a, b\n", "a", "import b\n"),
        ("import a, b  # c\n", "b", "import a  # c\n"),
        ("import a.b.c\nx = 1\n", "a", "x = 1\n"),
        ("from m import (a, b)\n", "b", "from m import (a)\n"),
        ("from m import a as x, b\n", "x", "from m import b\n"),
        ("from m import (\n    a,\n    b,  # two\n    c\n)\n", "c", "from m import (\n    a,\n    b  # two\n)\n"),
        ("from m import (\n    a, b,\n    c,\n)\n", "b", "from m import (\n    a, c,\n)\n"),
        ("try:\n    import a\nexcept ImportError:\n    a = None\n", "a", "try:\n    pass\nexcept ImportError:\n    a = None\n"),
        ("x = 1; import a; y = 2\n", "a", "x = 1; y = 2\n"),
        ("import a; import b\n", "b", "import a\n"),
    ],
)
def test_a_name_is_taken_out_of_an_import(source: str, name: str, wanted: str) -> None:
    module = module_of(source)
    at = next(
        n for n in ast.walk(module.tree)
        if isinstance(n, (ast.Import, ast.ImportFrom)) and any((a.asname or a.name.split(".")[0]) == name for a in n.names)
    )  # fmt: skip
    assert written(module, DropImport(PATH, module.span(at), name)) == wanted


def test_a_name_that_an_import_does_not_bind_is_an_error() -> None:
    module = module_of("from m import a\n")
    with pytest.raises(RewriteError, match="does not bind b"):
        written(module, DropImport(PATH, statement(module, "from"), "b"))
    module = module_of("from m import *\n")
    with pytest.raises(RewriteError, match="names what it brings"):
        written(module, DropImport(PATH, statement(module, "from"), "b"))


def test_two_names_of_one_import() -> None:
    module = module_of("from m import a, b, c\n")
    at = statement(module, "from")
    assert written(module, DropImport(PATH, at, "a"), DropImport(PATH, at, "c")) == "from m import b\n"
    got = written(module, *[DropImport(PATH, at, n) for n in "abc"], NeedImport(PATH, at, "import z"))
    assert got == "import z\n"


def test_a_new_import_behind_and_in_front() -> None:
    module = module_of("# head\nimport a\nimport b\n")
    got = written(module, NeedImport(PATH, statement(module, "import a"), "import x"))
    assert got == "# head\nimport a\nimport x\nimport b\n"
    got = written(module, NeedImport(PATH, statement(module, "import b"), "import x", before=True))
    assert got == "# head\nimport a\nimport x\nimport b\n"


# Bytes


def bytes_with_keyword(data: bytes, text: str, value: str = "2") -> bytes:
    module = SourceModule(PATH, data)
    edits = [SetKeyword(PATH, call(module, text), "b", value)]
    return with_deep_stack(lambda: rewrite_bytes(module, edits))


@pytest.mark.parametrize(
    "data",
    [
        b"x = 1\r\nf(1)\r\ny = 2\r\n",
        b"x = 1\rf(1)\ry = 2\r",
        b"x = 1\r\nf(1)\ny = 2\r",
        b"x = 1\n\x0c\nf(1)\n\x0c\n",
        b"if x:\n\tf(1)\n\tg()\n",
        b"if x:\n  f(1)\n  if y:\n        g()\n",
        b"\xef\xbb\xbff(1)\r\n",
        b"f(1)",
        b"if x:\n    f(1)",
        b"if x:\r\n  g(f(1))",
        b"# -*- coding: latin-1 -*-\ns = '\xe9\xff'; f(1)  # \xe9\n",
        "# vim: set fileencoding=euc-jp :\nf(1)  # 日本\n".encode("euc-jp"),
        "x = '日本', f(1), 'ü'\n".encode(),
        "def ф():\n  return 'é' + f(1)\n".encode(),
        b"x = 1  \t \nf(1)   # trailing   \n\n\n\n",
        b"x = '''a\r\nb\n'''\nf(1)\n",
        b"f(1)\n#\x1a\n",
        "x = '\u2028\u0085'\nf(1)\n".encode(),
    ],
)
def test_bytes_outside_the_edit_stay(data: bytes) -> None:
    got = bytes_with_keyword(data, "f(1)")
    assert got == data.replace(b"f(1)", b"f(1, b=2)")


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_new_lines_end_as_their_neighbours_do(newline: str) -> None:
    data = "def f():\n  a()\n  b()\n".replace("\n", newline).encode()
    module = SourceModule(PATH, data)
    a, b = statement(module, "a("), statement(module, "b(")
    edits = [WrapInGuard(PATH, a, "r", a), InsertAfter(PATH, b, "if x:\n    y()"), AddComment(PATH, a, ("why",))]
    wanted = "def f():\n  # why\n  if r:\n    a()\n  b()\n  if x:\n    y()\n".replace("\n", newline)
    assert with_deep_stack(lambda: rewrite_bytes(module, edits)) == wanted.encode()


def test_mixed_line_ends_each_stay() -> None:
    data = b"if x:\r\n    a()\n    b()\r\n    c()\n"
    module = SourceModule(PATH, data)
    edits = [WrapInGuard(PATH, statement(module, "a("), "r", statement(module, "c("))]
    got = with_deep_stack(lambda: rewrite_bytes(module, edits))
    assert got == b"if x:\r\n    if r:\n        a()\n        b()\r\n        c()\n"


def test_a_form_feed_above_the_edited_statement() -> None:
    data = b"import a\n\x0c\n\n# about f\n\x0cdef f():\n    g(1)\n"
    got = bytes_with_keyword(data, "g(1)")
    assert got == data.replace(b"g(1)", b"g(1, b=2)")


def test_no_final_newline_is_kept_by_every_word() -> None:
    module = module_of("if x:\n    a()\n    b()")
    b = statement(module, "b(")
    assert written(module, WrapInGuard(PATH, b, "r", b)) == "if x:\n    a()\n    if r:\n        b()"
    assert written(module, InsertAfter(PATH, b, "c()")) == "if x:\n    a()\n    b()\n    c()"
    assert written(module, InsertBefore(PATH, b, "c()")) == "if x:\n    a()\n    c()\n    b()"
    assert written(module, RemoveStatement(PATH, b)) == "if x:\n    a()\n"
    assert written(module, RemoveStatement(PATH, b), RemoveStatement(PATH, statement(module, "a("))) == "if x:\n    pass\n"


def test_new_code_that_the_encoding_cannot_hold_is_refused() -> None:
    with pytest.raises(RewriteError, match="iso-8859-1, which cannot hold"):
        bytes_with_keyword(b"# coding: latin-1\nf(1)\n", "f(1)", "'\u2713'")


# Refused, told


def test_an_anchor_that_is_not_there() -> None:
    module = module_of("f(1)\n")
    at = call(module, "f(")
    lost = type(at)(at.line, at.column + 1, at.end_line, at.end_column)
    with pytest.raises(RewriteError, match=r"nothing at module.py:1:2 for SetKeyword"):
        written(module, SetKeyword(PATH, lost, "b", "2"))


def test_an_anchor_outside_the_file() -> None:
    module = module_of("f(1)\n")
    at = call(module, "f(")
    with pytest.raises(RewriteError, match="no whole statement holds line 9"):
        written(module, SetKeyword(PATH, type(at)(9, 0, 9, 3), "b", "2"))


def test_an_output_that_does_not_compile() -> None:
    module = module_of("f(b=1, **c)\nx = f(*a)\n")
    with pytest.raises(RewriteError, match="would not compile"):
        written(module, InsertAfter(PATH, statement(module, "x ="), "break"))
    with pytest.raises(RewriteError, match="would not compile"):
        written(module, InsertAfter(PATH, statement(module, "x ="), "f(b=1, b=2)"))


def test_code_that_is_no_python() -> None:
    module = module_of("f(1)\n")
    for edit in (
        SetKeyword(PATH, call(module, "f("), "b", "1 +"),
        ReplaceExpression(PATH, call(module, "f("), "1 +"),
        InsertAfter(PATH, statement(module, "f("), "if:"),
        AddDecorator(PATH, statement(module, "f("), "a"),
    ):
        with pytest.raises(RewriteError):
            written(module, edit)


def test_a_file_that_never_compiled_may_be_edited() -> None:
    assert with_keyword("return f(1)\n", "f(") == "return f(1, b=2)\n"


def test_deep_expressions_are_written() -> None:
    source = "x = " + " + ".join(f"f({i})" for i in range(900)) + "\n"
    module = module_of(source)
    assert written(module, SetKeyword(PATH, call(module, "f(7)"), "b", "2")) == source.replace("f(7)", "f(7, b=2)")


def test_a_long_chain_of_methods_is_written() -> None:
    source = "x = f(1)" + ".a()" * 400 + "\n"
    assert with_keyword(source, "f(1)", "b") .count("b=2") == 1


def test_nested_brackets_are_written() -> None:
    source = "x = " + "(" * 90 + "f(1)" + ")" * 90 + "\n"
    assert with_keyword(source, "f(1)") == source.replace("f(1)", "f(1, b=2)")


def test_what_is_too_deep_is_told_and_the_process_lives() -> None:
    for source in ("x = " + "(" * 300 + "f(1)" + ")" * 300 + "\n", "x = " + "-" * 20_000 + "1\n", "x" + "[0]" * 20_000 + "\n"):
        with contextlib.suppress(Unreadable, RewriteError):
            module = module_of(source)
            assert written(module, InsertAfter(PATH, statement(module, "x"), "y")) == source + "y\n"


def test_a_chain_that_libcst_would_copy_for_minutes_is_told() -> None:
    module = with_deep_stack(lambda: module_of("x" + "[0]" * 20_000 + "\n"))  # as where somebody has raised the limit
    with pytest.raises(RewriteError, match="1: an expression here is nested too deeply to be written anew"):
        written(module, InsertAfter(PATH, statement(module, "x"), "y"))


def test_the_recursion_limit_is_given_back() -> None:
    import sys

    before = sys.getrecursionlimit()
    with pytest.raises(ZeroDivisionError):
        with_deep_stack(lambda: 1 // 0)
    assert sys.getrecursionlimit() == before


def test_positions_are_characters() -> None:
    module = module_of("s = '日本語'; t = f('ü', g(1))\n")
    got = written(module, SetKeyword(PATH, call(module, "f("), "b", "2"), SetKeyword(PATH, call(module, "g("), "c", "'é'"))
    assert got == "s = '日本語'; t = f('ü', g(1, c='é'), b=2)\n"
    assert node(module, "g(1)", ast.Call).col_offset != span(module, "g(1)", ast.Call).column  # type: ignore[attr-defined]
