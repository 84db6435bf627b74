"""Does a place run once for each item of a rank's own share? By the loops round it, their tests, and the loops of the callers.

What is written there belongs to items that no other rank has, and a test for rank 0 would lose them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.bindings import bindings_of
from codemods.analysis.files.named_by_items import LOADERS
from codemods.analysis.files.own_paths import callers_of, given_to
from codemods.analysis.names import dotted, is_parameter, last
from codemods.analysis.output.effect_kinds import names_rank
from codemods.analysis.output.rank_share import is_share, over_a_share
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import SourceModule, walk, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_CALLS = 4  # on the way up
_HANDED = 6  # places that hand a function on
_TRAINS = lazy(r"\bbackward\(|optimi[sz]er|\btrain(?:_\w+|ing_\w+)?\(")
_LOOPS = (ast.For, ast.AsyncFor)
_ADDS = frozenset({"append", "extend", "add"})


def in_own_rounds(project: Project, module: SourceModule, statements: Sequence[ast.stmt]) -> bool:
    """True where the loops round the statements, or round a call that leads there, go through a share of the rank's own."""
    if over_a_share(module, statements):
        return True
    first = statements[0]
    key = ("in own rounds", module.path, first.lineno, first.col_offset)
    return project.keep(key, lambda: _is_in_own_rounds(project, module, first, frozenset(), _CALLS))


def _is_in_own_rounds(project: Project, module: SourceModule, node: ast.AST, seen: frozenset[int], depth: int) -> bool:
    if any(_is_dealt(project, module, loop, below) for loop, below in _loops_round(module, node)):
        return True
    function = module.function_of(node)
    if function is None or id(function) in seen or depth == 0:
        return False
    seen |= {id(function)}
    places: list[tuple[SourceModule, ast.AST]] = [(s.module, s.call) for s in callers_of(project, module, function)]
    handed = uses_of(project, module, function).outside_tests().handed_on[:_HANDED]  # `pool.starmap_async(export, [row])`
    places += [(h.module, h.node) for h in handed]
    return any(_is_in_own_rounds(project, home, place, seen, depth - 1) for home, place in places)


def _loops_round(module: SourceModule, node: ast.AST) -> Iterator[tuple[ast.For | ast.AsyncFor, list[ast.AST]]]:
    """The loops in whose body a place stands, within its function, each with what stands between the two."""
    between: list[ast.AST] = [node]
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return
        if isinstance(up, _LOOPS) and between[-1] in up.body:
            yield up, between
        between.append(up)


def _is_dealt(project: Project, module: SourceModule, loop: ast.For | ast.AsyncFor, between: list[ast.AST]) -> bool:
    if _is_share_here(project, module, loop.iter) or _goes_through_a_cut(module, loop):
        return True
    tests = [up.test for up in between if isinstance(up, ast.If)]
    for statement in loop.body:
        if statement is between[-1]:
            break
        if isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Continue) and not statement.orelse:
            tests.append(statement.test)
    return any(_picks(project, module, test) for test in tests)


def _picks(project: Project, module: SourceModule, test: ast.expr) -> bool:
    """True for `i % world_size != rank`, and for `i not in mine` where `mine` holds the numbers of a share."""
    if _counts_round(module, test):
        return True
    for part in walk(test):
        if isinstance(part, ast.Compare) and isinstance(part.ops[0], (ast.In, ast.NotIn)):
            if _is_share_here(project, module, part.comparators[0]):
                return True
    return False


def _counts_round(module: SourceModule, test: ast.expr) -> bool:
    """True for `i % world_size == rank`; `step % 10 == 0 and rank == 0` picks no items."""
    for part in walk(test):
        if not isinstance(part, ast.Compare) or any(isinstance(side, ast.Constant) for side in _sides(part)):
            continue
        if names_rank(module.text_of(part)) and any(_has_remainder(side) for side in _sides(part)):
            return True
    return False


def _has_remainder(side: ast.expr) -> bool:
    return any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod) for n in walk(side))


def _sides(test: ast.Compare) -> tuple[ast.expr, ...]:
    return (test.left, *test.comparators)


def _is_share_here(project: Project, module: SourceModule, items: ast.expr) -> bool:
    """True for a share by its own text, one that is filled item by item, and one that a caller hands over."""
    if is_share(module, items):
        return True
    names = [n for n in walk(items) if isinstance(n, ast.Name)]
    if any(_is_filled_by_rank(module, n) for n in names):
        return True
    handed = [n for n in names if is_parameter(module, n.id, n)]
    return any(is_share(home, value) for n in handed for home, value in given_to(project, module, n))


def _goes_through_a_cut(module: SourceModule, loop: ast.For | ast.AsyncFor) -> bool:
    """True for a loop over what holds the items of a cut list; not where it trains: a checkpoint is no item's."""
    names = [n for n in walk(loop.iter) if isinstance(n, ast.Name)]
    if not any(_holds_a_cut(module, n) for n in names):
        return False
    return LOADERS.search(module.text_of(loop.iter)) is None and _TRAINS.search(module.text_of(loop)) is None


def _holds_a_cut(module: SourceModule, name: ast.Name) -> bool:
    """True for a list that is cut to the rank's items (`keys = keys[rank::world]`), and for what is made of such a list."""
    if _is_cut(module, name):
        return True
    made = (b.value for b in bindings_of(module, name) if isinstance(b.value, ast.Call) and not b.part)
    made = (call for call in made if not last(dotted(call.func)).endswith("Loader"))
    given = (a for call in made for a in (*call.args, *(k.value for k in call.keywords)))
    return any(isinstance(a, ast.Name) and _is_cut(module, a) for a in given)


def _is_cut(module: SourceModule, name: ast.Name) -> bool:
    values = (b.value for b in bindings_of(module, name) if not b.part)
    cuts = (v for v in values if isinstance(v, ast.Subscript) and isinstance(v.slice, ast.Slice))
    return any(dotted(c.value) == name.id and is_share(module, c) for c in cuts)


def _is_filled_by_rank(module: SourceModule, name: ast.Name) -> bool:
    """True for a list that gets an item where its number is the rank's: `if i % world_size == rank: mine.append(x)`."""
    scope = module.function_of(name) or module.tree
    for test in walk_scope(scope):
        if not isinstance(test, ast.If) or not _counts_round(module, test.test):
            continue
        for call in (n for s in test.body for n in walk(s)):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _ADDS:
                if dotted(call.func.value) == name.id:
                    return True
    return False
