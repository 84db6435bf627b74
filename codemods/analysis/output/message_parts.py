"""Which lines of a function belong to one message, and must be kept to rank 0 together or not at all?

A header and the loop that lists what it announces; what is said at the beginning of a work and at its end; a title, and what
came out of the work below it. Where one of them stays on every rank, a guard round the other leaves half a message in the log
of each other rank.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.analysis.output.own_lines import trains
from codemods.analysis.positions import above, behind
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy

_LONGEST = 25  # lines of a loop or a branch that still is the body of a message
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_BODIES = (*_LOOPS, ast.If, ast.With)
_BEGINS = lazy(r"[^A-Za-z]*(?P<stem>[A-Za-z]{2,})ing\b")
_WORDS = 4  # of a line, among which the end of a work names it: `The model was saved`


def holds_its_body(module: SourceModule, last: ast.stmt, others: Iterable[ast.stmt]) -> bool:
    """True where one of `others` stands in the loop or the branch that comes directly below the line `last`."""
    body = next((s for s in behind(module, _alone(module, last)) if not isinstance(s, (ast.Assign, ast.AnnAssign))), None)
    if not isinstance(body, _BODIES) or not _is_short(body):
        return False
    inside = {id(n) for n in walk(body)}
    return any(id(other) in inside for other in others)


def stands_below_its_header(module: SourceModule, first: ast.stmt, others: Iterable[ast.stmt]) -> bool:
    """True for a line in a loop, where one of `others` is the line directly above that loop."""
    headers = {id(other) for other in others}
    return any(id(header) in headers for loop in _loops_round(module, first) for header in above(module, loop)[-1:])


def is_title_or_result(module: SourceModule, first: ast.stmt, last: ast.stmt, others: Iterable[ast.stmt]) -> bool:
    """True for a title and a result, `print("Time")`, `took = measure()`, `print(took)`, where `others` hold the other one."""
    found = {id(other) for other in others}
    work, shown = [*behind(module, last)[:2], None, None][:2]
    if work is not None and shown is not None and id(shown) in found and _shows_what_came_out(work, shown):
        return True
    title, before = [None, None, *above(module, first)[-2:]][-2:]
    return title is not None and before is not None and id(title) in found and _shows_what_came_out(before, first)


def _shows_what_came_out(work: ast.stmt, shown: ast.stmt) -> bool:
    """True where a call gives a name a value, and the line shows that."""
    if not isinstance(work, ast.Assign) or not any(isinstance(n, ast.Call) for n in walk(work.value)):
        return False
    bound = {n.id for t in work.targets for n in walk(t) if isinstance(n, ast.Name)}
    return isinstance(shown, ast.Expr) and any(isinstance(n, ast.Name) and n.id in bound for n in walk(shown))


def is_other_end(first: ast.stmt, other: ast.stmt) -> bool:
    """True for `Saving the graphs` and `Saved.`: what is said when a work begins, and when it is done."""
    one, two = _text(first), _text(other)
    return _are_begin_and_end(one, two) or _are_begin_and_end(two, one)


def says_the_same(module: SourceModule, first: ast.stmt, other: ast.stmt) -> bool:
    """True for two lines of one text in one run: where one stays, nobody sees that the other one goes."""
    if not isinstance(first, ast.Expr) or _text(first) == "" or ast.dump(first) != ast.dump(other):
        return False
    return not any(_is_other_arm(up, first, other) for up in module.ancestors(first) if isinstance(up, ast.If))


def _is_other_arm(test: ast.If, first: ast.stmt, other: ast.stmt) -> bool:
    arms = [{id(n) for s in arm for n in walk(s)} for arm in (test.body, test.orelse)]
    return any(id(first) in one and id(other) in two for one, two in (arms, arms[::-1]))


def _loops_round(module: SourceModule, statement: ast.stmt) -> Iterator[ast.stmt]:
    for up in module.ancestors(statement):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return
        if isinstance(up, _LOOPS) and _is_short(up):
            yield up


def _is_short(body: ast.stmt) -> bool:
    """False for a loop that trains, and for what is no list of lines but the work itself."""
    if isinstance(body, (ast.For, ast.AsyncFor)) and trains([body]):
        return False
    return (body.end_lineno or body.lineno) - body.lineno < _LONGEST


def _are_begin_and_end(begin: str, end: str) -> bool:
    if (begins := _BEGINS.match(begin)) is None:
        return False
    return f"{begins['stem'].lower()}ed" in (word.strip(".,:;!'\"").lower() for word in end.split()[:_WORDS])


def _alone(module: SourceModule, last: ast.stmt) -> ast.stmt:
    """The `if` that a line is the end of, `if verbose: print(…)`: what comes below that comes below the line."""
    up = module.parent(last)
    while isinstance(up, ast.If) and not up.orelse and up.body[-1] is last:
        last, up = up, module.parent(up)
    return last


def _text(statement: ast.stmt) -> str:
    """The beginning of what a line shows."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    shown = call.args[0] if isinstance(call, ast.Call) and call.args else None
    shown = shown.values[0] if isinstance(shown, ast.JoinedStr) and shown.values else shown
    return shown.value if isinstance(shown, ast.Constant) and isinstance(shown.value, str) else ""
