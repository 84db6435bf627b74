"""Whether a method of a class runs behind a statement of another one: from the constructor on, through calls of `self`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassFacts, ClassSite
from codemods.analysis.wrapped.wrapper_tests import arms_exclude, conditions_of, tests_over
from codemods.files.source import FunctionNode, walk
from codemods.runtime.lazy_pattern import lazy

DEPTH = 4
_KIND = lazy(r"hasattr|isinstance|type\(")  # a test that tells the wrapper from the model


def runs_behind(facts: ClassFacts, use: tuple[FunctionNode, ast.AST], wrap: tuple[FunctionNode, ast.AST]) -> bool:
    """True where the statement `wrap` of one method stands in front of the place `use` of a method, in the order of the calls.

    What the constructor comes to is in front of every method that it does not call before. Where the wrap is in another method,
    only what that method calls further down is behind it, and what the methods that call it do and call further down.
    """
    return _is_behind(facts, use, wrap, DEPTH)


def _is_behind(facts: ClassFacts, use: tuple[FunctionNode, ast.AST], wrap: tuple[FunctionNode, ast.AST], depth: int) -> bool:
    home, statement = wrap
    function, node = use
    if function is home:
        return _line(node) > (getattr(statement, "end_lineno", None) or _line(statement))
    first = facts.method("__init__")
    passed = _split(facts, first, home, statement) if first is not None else None
    if passed is not None:
        before, place = passed
        if first is not None and function is first[1]:
            return _line(node) > place
        return function.name not in before
    own = next((s for s in facts.lineage if home in s.methods().values()), None)
    if own is None:
        return False
    if function.name in _called_behind(facts, own, home, statement):
        return True
    return any(
        not arms_exclude(site.module, call, node) and _is_behind(facts, use, (caller, call), depth - 1)
        for site, caller, call in (callers_of(facts, home) if depth else [])
    )


def _called_behind(facts: ClassFacts, own: ClassSite, home: FunctionNode, statement: ast.AST) -> set[str]:
    """The methods that are called behind a statement of a method, and what these call; not where a test asks what a model is."""
    behind = ((call, name) for call, name in _own_calls(home) if call.lineno > _line(statement))
    after = {n for call, n in behind if not arms_exclude(own.module, statement, call) and not _asks_the_kind(own, call)}
    for _ in range(DEPTH):
        for name in list(after):
            if (found := facts.method(name)) is not None:
                after |= {inner for call, inner in _own_calls(found[1]) if not _asks_the_kind(found[0], call)}
    return after


def _asks_the_kind(site: ClassSite, call: ast.Call) -> bool:
    return any(_KIND.search(site.module.text_of(test)) for test in tests_over(site.module, call))


def callers_of(facts: ClassFacts, method: FunctionNode) -> list[tuple[ClassSite, FunctionNode, ast.Call]]:
    """The calls of a method by `self`, in the class and in those that it derives from."""
    found = facts.method(method.name)
    if found is None or found[1] is not method:
        return []
    return [
        (site, caller, call)
        for site in facts.lineage
        for caller in site.methods().values()
        for call, name in _own_calls(caller)
        if name == method.name and caller is not method
    ]


def always_runs(facts: ClassFacts, site: ClassSite, method: FunctionNode, statement: ast.AST) -> bool:
    """True where no exit stands above a statement of a method, and no test decides over a call of the method by `self`."""
    if any(True for _ in tests_over(site.module, statement)):
        return False
    return not any(conditions_of(s.module, call, caller) for s, caller, call in callers_of(facts, method))


def _split(
    facts: ClassFacts, first: tuple[ClassSite, FunctionNode], home: FunctionNode, statement: ast.AST
) -> tuple[set[str], int] | None:
    """(methods that the constructor calls before the wrap, the line of it that the wrap stands behind); None where it does not
    come to the wrap."""
    if first[1] is home:
        return _before(facts, home, _line(statement)), _line(statement)
    for call, name in _own_calls(first[1]):
        found = facts.method(name)
        if found is not None and comes_to(facts, found[1], home):
            before = _before(facts, first[1], call.lineno) | _on_the_way(facts, found[1], home, statement)
            return before, call.lineno
    return None


def _on_the_way(facts: ClassFacts, start: FunctionNode, home: FunctionNode, statement: ast.AST, depth: int = 0) -> set[str]:
    """What runs in front of the wrap in the methods that lead to it, and these themselves but for the last."""
    if start is home:
        return _before(facts, home, _line(statement))
    for call, name in _own_calls(start):
        found = facts.method(name)
        if found is not None and depth < DEPTH and comes_to(facts, found[1], home, depth):
            return {start.name} | _before(facts, start, call.lineno) | _on_the_way(facts, found[1], home, statement, depth + 1)
    return set()


def comes_to(facts: ClassFacts, start: FunctionNode, home: FunctionNode, depth: int = 0) -> bool:
    """True where one method is the other, or calls it, also by further ones of its own."""
    if start is home:
        return True
    if depth >= DEPTH:
        return False
    methods = (facts.method(name) for _, name in _own_calls(start))
    return any(m is not None and m[1] is not start and comes_to(facts, m[1], home, depth + 1) for m in methods)


def _before(facts: ClassFacts, function: FunctionNode, line: int) -> set[str]:
    """The methods that run before a line of this one, and what they call."""
    names = {name for call, name in _own_calls(function) if call.lineno < line}
    for _ in range(DEPTH):
        for name in list(names):
            if (found := facts.method(name)) is not None:
                names |= {inner for _, inner in _own_calls(found[1])}
    return names


def _own_calls(function: FunctionNode) -> Iterator[tuple[ast.Call, str]]:
    for node in walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if isinstance(node.func.value, ast.Name) and node.func.value.id == "self":
                yield node, node.func.attr


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)
