from __future__ import annotations

import ast
import io
import pickle
import sys
import tokenize

import pytest

from codemods.api.findings import Span
from codemods.files.source import SourceModule, Unreadable, child_nodes, decode, walk, walk_scope
from tests.places import module_of, node


def why(data: bytes) -> str:
    with pytest.raises(Unreadable) as error:
        SourceModule("pkg/a.py", data)
    return error.value.reason


# Bytes and encodings


@pytest.mark.parametrize(
    "data",
    [
        b"x = 1\n",
        b"\xef\xbb\xbfx = 1\n",
        b"# coding: latin-1\nx = '\xe9'\n",
        b"#!/bin/sh\n# -*- coding: iso-8859-15 -*-\nx = '\xa4'\n",
        b"# vim: set fileencoding=cp1252 :\nx = '\x80'\n",
        b"\n# coding=latin_1\nx = '\xe9'\n",
        b"# -*- coding: utf-8-unix -*-\nx = '\xc3\xa9'\n",
        b"# -*- coding: Latin-1-unix -*-\nx = '\xe9'\n",
        b"\x0c# coding: latin-1\r\nx = '\xe9'\r\n",
        b"\xef\xbb\xbf# coding: utf-8\nx = '\xc3\xa9'\n",
        "# coding: euc-jp\nx = '日本'\n".encode("euc-jp"),
        b"x = 'coding: latin-1'\n# coding: ascii\ny = '\xc3\xa9'\n",
        b"x = 1\n# coding: latin-1\ny = '\xc3\xa9'\n",
        b"\n\n# coding: latin-1\ny = '\xc3\xa9'\n",
        b"# " + b"x" * 390 + b"\n# coding: latin-1\ny = '\xe9'\n",
    ],
)
def test_the_text_is_what_python_reads_and_the_bytes_come_back(data: bytes) -> None:
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    text, ours, mark = decode("a.py", data)
    assert text == data.decode(encoding)
    assert mark + text.encode(ours) == data


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"# coding: klingon\n", "unknown encoding 'klingon'"),
        (b"# coding: hex\n", "unknown encoding 'hex'"),
        (b"x = '\xff'\n", "not utf-8: UnicodeDecodeError"),
        (b"# coding: ascii\nx = '\xe9'\n", "not ascii"),
        (b"\xef\xbb\xbf# coding: latin-1\n", "its byte order mark says utf-8, its coding line iso-8859-1"),
        ("# coding: iso-2022-jp\nx = '日'\n".encode("iso-2022-jp") + b"\x1b(B", "could not be kept"),
        (b"x = 1\0\n", "null bytes"),
    ],
)
def test_bytes_that_cannot_be_read_are_told(data: bytes, reason: str) -> None:
    assert reason in why(data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"print 'a'\n", "it looks like Python 2"),
        (b"def f(:\n", f"line 1: invalid syntax (read with Python {sys.version_info.major}.{sys.version_info.minor})"),
        (b"x = " + b"(" * 400 + b")" * 400 + b"\n", "nested"),
        (b"x = " + b"-" * 50_000 + b"1\n", "nested too deeply"),
    ],
)
def test_text_that_cannot_be_read_is_told(data: bytes, reason: str) -> None:
    assert reason in why(data)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python reads it")
@pytest.mark.parametrize(
    ("data", "version"),
    [
        (b"type X = int\n", "3.12 (type statement)"),
        (b"def f[T](x: T) -> T: ...\n", "3.12 (type parameters)"),
        (b"class A[T]: ...\n", "3.12 (type parameters)"),
        (b"x = f'{a['b']}'\n", "3.12 (nested quotes"),
    ],
)
def test_newer_syntax_is_told_with_the_version_that_could(data: bytes, version: str) -> None:
    assert f"it may need Python {version}" in why(data)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python reads it")
@pytest.mark.parametrize("data", [b"x = t'{a}'\n", b"try: a\nexcept A, B: b\n"])
def test_the_newest_syntax_is_told(data: bytes) -> None:
    assert "it may need Python 3.14" in why(data)


def test_unreadable_travels_between_processes() -> None:
    error = pickle.loads(pickle.dumps(Unreadable("a.py", "why")))
    assert (error.path, error.reason, str(error)) == ("a.py", "why", "a.py: why")


def test_warnings_of_the_read_code_are_not_shown(recwarn: pytest.WarningsRecorder) -> None:
    SourceModule("a.py", b"x = '\\d'\nassert (x, 1)\nx is 1\n")
    assert not recwarn.list


# The walk


def test_the_walk_is_in_source_order_and_misses_nothing() -> None:
    module = module_of("""\
        def f(a, *b, c=1, **d):
            try:
                with g(a) as x: return [y for y in x if y]
            except E as e: pass
            match a:
                case {"k": [1, *r], **s} if r: pass
        """)
    ours = [n for n in walk(module.tree) if hasattr(n, "lineno")]
    theirs = [n for n in ast.walk(module.tree) if hasattr(n, "lineno")]
    assert set(ours) == set(theirs)
    statements = [n.lineno for n in ours if isinstance(n, ast.stmt)]
    assert statements == sorted(statements)
    assert module.nodes(ast.Call) == [n for n in ours if isinstance(n, ast.Call)]


def test_a_scope_ends_at_functions_and_classes() -> None:
    module = module_of("def f():\n    x = 1\n    def g():\n        y = 2\n    z = lambda: w\n    class A:\n        v = 3\n")
    names = {n.id for n in walk_scope(module.functions[0]) if isinstance(n, ast.Name)}
    assert names == {"x", "z"}


def test_deep_trees_are_walked_without_recursion() -> None:
    module = SourceModule("a.py", b"x = " + b"+".join([b"1"] * 900) + b"\n")
    assert len(module.nodes(ast.BinOp)) == 899
    assert child_nodes(module.tree) == module.tree.body


def test_calls_by_their_last_name() -> None:
    module = module_of("a.log(1)\nlog(2)\na().log(3)\nb.warn(4)\n(lambda: 1)()\n")
    assert [c.lineno for c in module.calls_named("log")] == [1, 2, 3]
    assert [c.lineno for c in module.calls_named("warn", "log")] == [1, 2, 3, 4]
    assert module.calls_named("nothing") == []


# Relations


SOURCE = """\
class A:
    def m(self):
        def inner():
            self.log(1)
        return lambda: go(2)

    class B:
        x = make(3)

def f():
    try:
        a()
    except E:
        b()
    else:
        c()
    finally:
        d()
"""


def test_the_method_and_the_symbol_of_a_node() -> None:
    module = module_of(SOURCE)
    log, go, make = (node(module, f"{n}", ast.Call) for n in ("self.log(1)", "go(2)", "make(3)"))
    found = module.method_of(log)
    assert found is not None
    assert (found[0].name, found[1].name) == ("A", "m")
    assert module.method_of(make) is None
    assert (module.symbol(log), module.symbol(go), module.symbol(make)) == ("A.m.inner", "A.m", "A.B")
    assert module.symbol(module.functions[0]) == "A.m"
    function, klass = module.function_of(log), module.class_of(make)
    assert function and klass and (function.name, klass.name) == ("inner", "B")


def test_the_block_of_every_statement() -> None:
    module = module_of(SOURCE)
    for statement in [n for n in walk(module.tree) if isinstance(n, ast.stmt)]:
        assert any(s is statement for s in module.block_of(statement))
    owners = {type(owner).__name__ for owner, _ in module.blocks()}
    assert owners == {"ClassDef", "FunctionDef", "Try", "ExceptHandler"}


def test_cases_own_blocks() -> None:
    module = module_of("match a:\n    case 1:\n        b()\n")
    assert [type(owner).__name__ for owner, _ in module.blocks()] == ["match_case"]
    assert module.block_of(module.statement_of(node(module, "b()", ast.Call)))[0].lineno == 3


# Places


def test_spans_are_characters_and_text_comes_back() -> None:
    module = module_of("x = 'ü日', f('é')  # ö\ny = [\n  g('日'),\n]\n")
    for call, text in zip(module.nodes(ast.Call), ("f('é')", "g('日')"), strict=True):
        assert module.text_of(call) == text
    assert module.span(module.nodes(ast.Call)[0]) == Span(1, 10, 1, 16)
    assert module.text_of(module.nodes(ast.List)[0]) == "[\n  g('日'),\n]"
    assert module.text_at(Span(99, 0, 99, 1)) == ""


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_where_python_ends_them(end: str) -> None:
    data = end.join(["x = '\x0c\x1c\u2028\x85'", "y = f(1)", ""]).encode()
    module = SourceModule("a.py", data)
    assert len(module.lines) == 2
    assert module.text_of(module.nodes(ast.Call)[0]) == "f(1)"
    assert "".join(module.lines) == module.text


def test_spans_hold_and_overlap() -> None:
    outer, inner, beside = Span(1, 0, 3, 5), Span(2, 0, 2, 9), Span(3, 5, 3, 7)
    assert outer.holds(inner) and not inner.holds(outer) and outer.holds(outer)
    assert outer.overlaps(inner) and not outer.overlaps(beside) and not beside.overlaps(outer)


# Imports


def test_imports_by_the_name_they_bind() -> None:
    module = module_of("""\
        import a.b
        import c.d as e
        from f import g, h as i
        from . import j
        from ..k import l
        try:
            import m
        except ImportError:
            import n as m
        """)
    got = {name: [i.dotted for i in found] for name, found in module.imports.items()}
    assert got == {"a": ["a"], "e": ["c.d"], "g": ["f.g"], "i": ["f.h"], "j": [".j"], "l": ["..k.l"], "m": ["m", "n"]}
    assert module.imported_modules == {"a.b", "c.d", "f", ".", "..k", "m", "n"}


# Suppression comments


def test_suppression_comments_are_found_in_comments_only() -> None:
    module = module_of("""\
        x = 1  # noqa  # ddpfix: ignore[DDP101, unsynced-metric] because
        y = "# ddpfix: ignore[DDP102]"
        '''
        # ddpfix: ignore[DDP103]
        '''
        #ddpfix:ignore-file[DDP104]
        # ddpfix: ignore
        """)
    found = module.suppressions
    assert [(s.line, s.codes, s.reason, s.whole_file) for s in found] == [
        (1, ("DDP101", "unsynced-metric"), "because", False),
        (6, ("DDP104",), "", True),
        (7, (), "", False),
    ]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_suppression_comments_for_every_line_end(end: bytes) -> None:
    module = SourceModule("a.py", b"if x:\n\ty = 1  # ddpfix: ignore[DDP101] a\n\x0cz = 2".replace(b"\n", end))
    assert [(s.line, s.codes, s.reason) for s in module.suppressions] == [(2, ("DDP101",), "a")]
