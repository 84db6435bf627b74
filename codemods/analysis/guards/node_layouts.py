"""Files that local rank 0 of each node rightly writes, or cannot be left to one process by a change of this place alone.

A folder named by a clock is each node's own, for every process reads its own clock; not where a setting names it on another way.
Where paths hold the local rank, the whole layout is by it. And a value that is set under a test, and read under the same test
elsewhere, goes with all of those tests.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.bound_values import assigned
from codemods.analysis.distribution import is_test_file
from codemods.analysis.files.file_flow import Step
from codemods.analysis.names import dotted, last
from codemods.analysis.paths import origin_text
from codemods.data.rank_names import LOCAL_NAMES
from codemods.files.source import SourceModule, walk, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_CLOCK = lazy(r"\b(?:now|today|utcnow)\(|\bstrftime\(|\btime\.(?:time|localtime|ctime)\(|\basctime\(")
_CLOCKS = (b".now(", b"strftime(", b"time.time(", b"asctime(", b"localtime(", b".today(")
_JOINS = frozenset({"join", "joinpath", "Path", "open", "save", "makedirs", "mkdir"})
_PLACE = lazy(r"dir|path|folder|root|out|log|ckpt|checkpoint|save|name|run|exp|time|stamp", re.IGNORECASE)
_DEPTH = 4


def is_named_by_a_clock(project: Project, module: SourceModule, step: Step, around: list[ast.stmt]) -> bool:
    """True where the clock of each process is in the path, or in a folder of that name that a file of the project sets."""
    paths = [(step.module, p) for p in _given(step.call)]
    paths += [(module, p) for s in around for c in walk(s) if isinstance(c, ast.Call) for p in _given(c)]
    if any(_CLOCK.search(origin_text(home, p, depth=_DEPTH)) and not _is_named_otherwise(home, p) for home, p in paths):
        return True
    set_so = project.keep("folders named by a clock", lambda: _set_by_clocks(project))
    return bool(set_so) and any(n in set_so for home, p in paths for n in _folders(home, p))


def _is_named_otherwise(module: SourceModule, path: ast.expr) -> bool:
    """True where the clock names it on one way only, and a setting on the other (`args.name`, or the time)."""
    read = list(_clock_reads(module, path, _DEPTH))
    return bool(read) and all(_has_another_way(module, node) for node in read)


def _clock_reads(module: SourceModule, value: ast.expr, depth: int) -> Iterator[ast.expr]:
    """The expressions with a clock in them that a path is made of, through names."""
    if _CLOCK.search(module.text_of(value)):
        yield value
    elif depth > 0:
        for node in walk(value):
            if isinstance(node, (ast.Name, ast.Attribute)) and (name := dotted(node)) and name != "self":
                for given in assigned(module, node, name)[:4]:
                    yield from _clock_reads(module, given, depth - 1)


def _has_another_way(module: SourceModule, node: ast.expr) -> bool:
    statement = module.statement_of(node)
    targets = {dotted(t) for t in statement.targets} if isinstance(statement, ast.Assign) else set()
    if not isinstance(statement, ast.Assign) or not all(targets):
        return False
    value = statement.value
    if isinstance(value, ast.IfExp):
        return any(_is_a_setting(module, arm) for arm in (value.body, value.orelse))
    if isinstance(value, ast.BoolOp):
        return isinstance(value.op, ast.Or) and _is_a_setting(module, value.values[0])
    up = module.parent(statement)
    if not isinstance(up, ast.If):
        return False
    other = up.orelse if any(s is statement for s in up.body) else up.body
    given = [s.value for s in other if isinstance(s, ast.Assign) and {dotted(t) for t in s.targets} == targets]
    return any(_is_a_setting(module, v) for v in given)


def _is_a_setting(module: SourceModule, value: ast.expr) -> bool:
    """True for a name that is made of no clock: the same on every node."""
    named = any(isinstance(n, (ast.Name, ast.Attribute)) for n in walk(value))
    return named and _CLOCK.search(origin_text(module, value, depth=_DEPTH)) is None


def _given(call: ast.AST) -> list[ast.expr]:
    return [*call.args, *(k.value for k in call.keywords)] if isinstance(call, ast.Call) else []


def _folders(module: SourceModule, path: ast.expr) -> Iterator[str]:
    """The attributes that a path is made of: `save_dir` of `self.folder / "a.pt"` behind `self.folder = config.save_dir`."""
    text = origin_text(module, path, depth=_DEPTH)
    yield from (part.rpartition(".")[2].lstrip("_") for part in _ATTRIBUTE.findall(text))


_ATTRIBUTE = lazy(r"\b[A-Za-z_]\w*(?:\.\w+)+\b(?!\()")


def _set_by_clocks(project: Project) -> frozenset[str]:
    """The names of the attributes that hold folders or files named by a clock."""
    found: set[str] = set()
    for path in sorted({p for word in _CLOCKS for p in project.files_containing(word)}):
        if is_test_file(path) or (module := project.module(path)) is None:
            continue
        for node in module.nodes(ast.Assign):
            ends = {last(dotted(t)).lstrip("_") for t in node.targets if isinstance(t, ast.Attribute)}
            places = {e for e in ends if _PLACE.search(e)}
            joined = any(isinstance(n, (ast.BinOp, ast.JoinedStr, ast.Call)) for n in walk(node.value))
            if places and joined and _is_clocked(module, node.value):
                found |= places
    return frozenset(found)


def _is_clocked(module: SourceModule, value: ast.expr) -> bool:
    """True for a text that a clock is put into; `self.start_time = time.time()` names no place."""
    if isinstance(value, ast.Call) and dotted(value.func) == "time.time":
        return False
    return _CLOCK.search(origin_text(module, value)) is not None


def is_by_local_rank(module: SourceModule, node: ast.AST) -> bool:
    """True where the function makes paths with the local rank in them: `f"out/rank{local_rank}"`."""
    function = module.function_of(node)
    return any(
        isinstance(n, ast.JoinedStr) and _holds_local_rank(n) and _is_path(module, n)
        for n in walk_scope(function if function is not None else module.tree)
    )


def _holds_local_rank(text: ast.JoinedStr) -> bool:
    shown = (n for v in text.values if isinstance(v, ast.FormattedValue) for n in walk(v.value))
    return any(isinstance(n, (ast.Name, ast.Attribute)) and last(dotted(n)) in LOCAL_NAMES for n in shown)


def _is_path(module: SourceModule, text: ast.JoinedStr) -> bool:
    up = module.parent(text)
    if isinstance(up, ast.Call) and text in up.args:
        return (last(dotted(up.func)) or getattr(up.func, "attr", "")) in _JOINS
    if isinstance(up, ast.BinOp):
        return isinstance(up.op, ast.Div)
    written = "".join(v.value for v in text.values if isinstance(v, ast.Constant) and isinstance(v.value, str))
    return isinstance(up, ast.Assign) and "/" in written and " " not in written


def state_beside(module: SourceModule, node: ast.If, operand: ast.expr, body: list[ast.stmt]) -> tuple[str, int] | None:
    """(what the guarded statements set, the line that reads it under the same test elsewhere)."""
    inside = {id(n) for s in body for n in walk(s)}
    function = module.function_of(node)
    names = {dotted(n) for s in body for n in walk(s) if _is(n, ast.Store)}
    if not names:
        return None
    asked, loops = module.text_of(operand), _loops(module, node)
    for other in module.nodes(ast.If):
        if other is node or id(other) in inside or asked not in module.text_of(other.test):
            continue
        if module.function_of(other) is function and other.lineno < node.lineno and not loops & _loops(module, other):
            continue  # it is done with when the value is set
        below = [n for s in (other.test, *other.body) for n in walk(s)]
        if any(n is node for n in below):
            continue
        stored = {dotted(n) for n in below if _is(n, ast.Store)}
        for read in below:
            name = dotted(read) if _is(read, ast.Load) else ""
            if name in names and name not in stored and ("." in name or module.function_of(other) is function):
                return name, getattr(read, "lineno", other.lineno)
    return None


def _loops(module: SourceModule, node: ast.AST) -> set[int]:
    return {id(up) for up in module.ancestors(node) if isinstance(up, (ast.For, ast.AsyncFor, ast.While))}


def _is(node: ast.AST, context: type[ast.expr_context]) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, context) and bool(dotted(node))
