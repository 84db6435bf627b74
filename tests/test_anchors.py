"""Every anchor found on `ast` is found again by the rewriter: each call, statement and function of odd but real-looking files."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

import pytest

from codemods.api.findings import (
    AddComment,
    AddDecorator,
    InsertAfter,
    InsertBefore,
    RemoveStatement,
    ReplaceExpression,
    SetKeyword,
    WrapInGuard,
)
from codemods.files.source import SourceModule, walk
from codemods.rewriting.rewriter import replacements, rewrite, with_deep_stack

MODULE = '''\
#!/usr/bin/env python
# -*- coding: utf-8 -*-
"""Größe: a docstring."""
from __future__ import annotations
import os, sys; import torch as t
try:
    import lightning.pytorch as pl
except ImportError:  # old
    import pytorch_lightning as pl
if t.cuda.is_available(): os.environ["X"] = str(1); print("ü", t.rand(3), file=sys.stderr)
else: pass


@pl.decorate("é", key=t.ones(2))
class Model(pl.LightningModule, metaclass=type("M", (type,), {})):
    x: int = field(default=3); y = property(lambda self: self.go(1))

    def __init__(self, *, a=len("日本"), b: "int" = max(1, 2), **kw) -> None:
        super().__init__(); self.save(locals())
        self.net = t.nn.Sequential(
            t.nn.Linear(3, 4),  # in → out
            *[t.nn.ReLU() for _ in range(kw.get("n", 1))],
        )

    @staticmethod
    @wraps(print)
    async def step(batch, /, i, *rest):
        async with lock() as l, other(l): await go(batch)
        async for z in stream(): yield await z.get()
        return
'''
FLOW = '''\
def f(a):
\tfor i in range(3): print(i); g(i)
\telse:
\t\th(a)
\twhile (n := read(a)) and check(n):
\t\tif n > 1: go(n)
\t\telif also(n):
\t\t\tgo(2); stop()
\t\telif last(n): pass
\t\telse: end(n)
\twith open("a") as x, \\
\t     open("b") as y:
\t\tx.write(y.read())
\ttry: risky(1)
\texcept (A, B) as e: handle(e); raise C(e) from e
\telse:
\t\tfine()
\tfinally: clean()
\tmatch pick(a):
\t\tcase [1, x] if ok(x): use(x)
\t\tcase Point(x=0):
\t\t\tuse(0)
\tassert check(a), f"no {a!r}"
\tglobal q; q = 3
\tdel a[f(1)], b
\treturn (yield from gen(a)), [*x(1), *y(2)], {**d(1), "k": v(2)}
'''
EXPRESSIONS = '''\
x = f(1)(2)(3)[g(4)].h(5).i
y = (a(1) if b(2) else c(3)) or not d(4) and -e(5) ** f(6) < g(7) != h(8)
z = [i(j) for i in k(1) if l(i) for j in m(i)], {n(o): p(o) for o in q()}, {r(1)}, (s(t) for t in u())
w = lambda a=v(1), *b, **c: w(a, *b, **c)
v = ("one" "two".join(x(1)) + """three
four""".format(y(2)))
print(a(1), sep=b(2), *c(3), **d(4))
t[a(1):b(2):c(3), ..., d(4)] = e(5)
u = (((a(((1))))))
r = a(
  b(  # why
    c(1),

    # note
    d=e(2) ,
  ),
)
s = a(b for b in c(1))
q: list[f(1)] = g(2) or \\
    h(3)
p += i(4); o = j(5); k(6);
@a(1)
@b.c(d(2))
def n(m=o(3), *p: q(4), r: s(5) = t(6)) -> u(7): return v(8)
print((yield_ := a(1)), (b(2),), ())
'''
STRINGS = '''\
def f(x):
    """Doc \\
    more."""
    a = """
  left
""" % g(x)
    b = r"\\d" + h("\\N{BULLET}", b"\\x00", rb"x", u"ü")
    log("%s" % (i(1),), 'a' 'b' 'c', j("""
""", k(2)))
    return (l(1)
            + m(2)  # two
            - n(3))
'''
GENERATED = "".join(
    f"def f{i}(a, b):\n  if a.x({i}): return b.y({i}, 'é{i}') or a(b(c({i})))\n  a.z({i}); b()\n\n"
    for i in range(3)
)
SOURCES = {"module": MODULE, "flow": FLOW, "expressions": EXPRESSIONS, "strings": STRINGS, "generated": GENERATED}
SHAPES: dict[str, Callable[[str], bytes]] = {
    "as it is": lambda text: text.encode(),
    "crlf": lambda text: text.replace("\n", "\r\n").encode(),
    "cr": lambda text: text.replace("\n", "\r").encode(),
    "mark and no final newline": lambda text: b"\xef\xbb\xbf" + text.rstrip("\n").encode(),
    "inside": lambda text: ("class Out:\n  if 1:\n" + "".join(_inside(text))).encode(),
}


def _inside(text: str) -> list[str]:
    """The text as a block, but for what only a module may hold, and with strings left as they are."""
    from io import StringIO

    from codemods.files.source import SourceModule as Read

    held = {n for node in walk(Read("x.py", text.encode()).tree) if isinstance(node, (ast.Constant, ast.JoinedStr))
            for n in range(node.lineno + 1, (node.end_lineno or 0) + 1)}  # fmt: skip
    lines = []
    for n, line in enumerate(StringIO(text), 1):
        plain = line.replace("from __future__ import annotations", "pass")
        lines.append(plain if n in held or not line.strip() else "      " + plain)
    return lines


@pytest.fixture(params=SOURCES)
def text(request: pytest.FixtureRequest) -> str:
    return SOURCES[request.param]


@pytest.fixture(params=SHAPES)
def module(request: pytest.FixtureRequest, text: str) -> SourceModule:
    return SourceModule("module.py", SHAPES[request.param](text))


def all_made(module: SourceModule, edits: list) -> None:  # type: ignore[type-arg]
    """Each alone; then all at once."""
    assert edits

    def work() -> None:
        for edit in edits:
            assert rewrite(module, [edit]) != module.text, edit
        rewrite(module, edits)

    with_deep_stack(work)


def statements(module: SourceModule) -> list[ast.stmt]:
    """Those that may stand under an `if`, or go: no `elif`, nothing that belongs to the head of a module, no `pass`."""
    fixed = (ast.ImportFrom, ast.Global, ast.Pass)
    found = [n for n in walk(module.tree) if isinstance(n, ast.stmt) and not isinstance(n, fixed)]
    found = [n for n in found if not (isinstance(n, ast.If) and module.text_of(n).startswith("elif"))]
    return [n for n in found if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))]


def test_calls(module: SourceModule) -> None:
    calls = [module.span(c) for c in module.nodes(ast.Call)]
    all_made(module, [SetKeyword("module.py", at, f"zz_{i}", "0") for i, at in enumerate(calls)])


def squeezed(text: str) -> str:
    """The text without what a new argument may move: white space, commas, brackets."""
    return re.sub(r"[\s,()\\]", "", text)


def test_nothing_but_the_argument_changes(module: SourceModule) -> None:
    """Outside the run every line is as it was; inside, every word, string and comment is there, in order."""

    def work() -> None:
        for call in module.nodes(ast.Call):
            edit = SetKeyword("module.py", module.span(call), "zz_new", "0")
            ((top, bottom, new),) = replacements(module, [edit])
            assert top <= call.lineno and (call.end_lineno or 0) <= bottom
            assert rewrite(module, [edit]) == "".join([*module.lines[: top - 1], new, *module.lines[bottom:]])
            old = "".join(module.lines[top - 1 : bottom])
            assert squeezed(new).replace("zz_new=0", "", 1) == squeezed(old)
            assert new.endswith(("\n", "\r")) is old.endswith(("\n", "\r"))

    with_deep_stack(work)


def test_expressions(module: SourceModule) -> None:
    kinds = (ast.Call, ast.BinOp, ast.BoolOp, ast.Compare, ast.Lambda, ast.IfExp, ast.List, ast.Dict, ast.Subscript)
    for node in [n for kind in kinds for n in module.nodes(kind)]:
        if getattr(node, "ctx", None) is None or isinstance(node.ctx, ast.Load):  # type: ignore[attr-defined]
            edit = ReplaceExpression("module.py", module.span(node), "zz")
            assert "zz" in with_deep_stack(lambda e=edit: rewrite(module, [e]))  # type: ignore[misc]


def test_statements_are_guarded(module: SourceModule) -> None:
    def work() -> None:
        for node in statements(module):
            at = module.span(node)
            new = ast.parse(rewrite(module, [WrapInGuard("module.py", at, "zz", at)]))
            guards = [n for n in ast.walk(new) if isinstance(n, ast.If) and isinstance(n.test, ast.Name) and n.test.id == "zz"]
            assert [ast.dump(b) for g in guards for b in g.body] == [ast.dump(node)]

    with_deep_stack(work)


def test_statements_are_removed_and_neighbours_come(module: SourceModule) -> None:
    def work() -> None:
        for node in statements(module):
            at = module.span(node)
            for edit in (InsertBefore("module.py", at, "zz = 1"), InsertAfter("module.py", at, "zz = 1")):
                assert rewrite(module, [edit]).count("zz = 1") == 1
            gone = ast.parse(rewrite(module, [RemoveStatement("module.py", at)]))
            assert len(ast.dump(gone)) < len(ast.dump(module.tree))

    with_deep_stack(work)


def test_functions_and_comments(module: SourceModule) -> None:
    edits = [AddDecorator("module.py", module.span(f), "zz") for f in module.functions]
    if edits:
        all_made(module, edits)
    lines = module.text.splitlines()
    first = [s for s in statements(module) if module.is_whole(s) and not lines[s.lineno - 1][: module.span(s).column].strip()]
    all_made(module, [AddComment("module.py", module.span(s), ("zz",)) for s in first])


def test_all_words_at_once(module: SourceModule) -> None:
    edits = [SetKeyword("module.py", module.span(c), "zz", "0") for c in module.nodes(ast.Call)]
    guards = [s for s in statements(module) if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)]
    everything = [*edits, *(WrapInGuard("module.py", module.span(s), "zz", module.span(s)) for s in guards)]
    everything += [AddDecorator("module.py", module.span(f), "zz") for f in module.functions]
    got = with_deep_stack(lambda: rewrite(module, everything))
    assert got.count("zz=0") == len(edits)
    assert got.count("if zz:") == len(guards)
    assert got.count("@zz") == len(module.functions)
