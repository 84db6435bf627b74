"""The layers that a list is filled with one by one, where tests decide which of them are made."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.model.member_kinds import Kind, Member, choice, in_loop, marked
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import record, replace

SOMETIMES = "…"  # the condition of a layer that one arm of a test alone adds


@record
class Added:
    """made: what a statement adds. tests: those round it in the function, outermost first, each with the arm it stands in."""

    made: tuple[Member, ...]
    tests: tuple[tuple[ast.If, bool], ...]


def added_by(module: SourceModule, function: FunctionNode, node: ast.AST, made: Iterable[Member]) -> Added:
    """What the statement of `node` adds; in a loop it stands for as many layers as there are rounds."""
    repeated = in_loop(module, node, function)
    tests: list[tuple[ast.If, bool]] = []
    below: ast.AST = node
    for up in module.ancestors(node):
        if up is function:
            break
        if isinstance(up, ast.If) and below is not up.test:
            tests.append((up, any(below is s for s in up.body)))
        below = up
    return Added(tuple(marked(m, repeated) for m in made), tuple(reversed(tests)))


def alternatives(added: Iterable[Added], depth: int = 0) -> tuple[Member, ...]:
    """The layers in their order: what two arms of a test add is one of the two, what one arm alone adds may not be there."""
    out: list[Member] = []
    waiting = list(added)
    while waiting:
        first = waiting[0]
        if len(first.tests) <= depth:
            out += first.made
            waiting = waiting[1:]
            continue
        test = first.tests[depth][0]
        same = [a for a in waiting if len(a.tests) > depth and a.tests[depth][0] is test]
        waiting = [a for a in waiting if a not in same]
        out += _of_test(same, depth)
    return tuple(out)


def _of_test(added: list[Added], depth: int) -> list[Member]:
    arms = [alternatives([a for a in added if a.tests[depth][1] is which], depth + 1) for which in (True, False)]
    if len(arms[0]) == len(arms[1]):
        return [_one_of(pair) for pair in zip(*arms, strict=True)]
    return [replace(m, condition=m.condition or SOMETIMES) for arm in arms for m in arm]


def _one_of(pair: tuple[Member, ...]) -> Member:
    first = pair[0]
    repeated = any(m.repeated for m in pair)
    return choice(Member("", Kind.CHOICE, "", first.path, first.line, repeated=repeated), list(pair))
