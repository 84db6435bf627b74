"""Do all ranks meet the same collectives in the same order? Rank 0's way through a function beside that of the other ranks.

Collectives are paired by position, not by name: one that only some ranks meet waits for ever, or takes the next one of the
others for its own. The two ways are laid side by side; what both meet is paired, and what is left over on one side has no
partner unless the other side makes an unknown call in its stead.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.exit_ways import Items, followed, leaves_alone, ways_out
from codemods.analysis.ranks.rank_guards import ORDERED_CONTEXTS, speaks_of_ranks
from codemods.analysis.ranks.trace_items import Choice, Item, Meeting, Side, Unknown, behind_loop, holds_unknown, meetings
from codemods.analysis.ranks.traces import parts_ranks, trace_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import record, replace
from codemods.store.project import Project

_HEAVY = 1000  # a collective is paired before any number of unknown calls
_WIDEST = 400  # items of one side; longer ones are not laid side by side


@record
class Mismatch:
    """A collective that one side meets and the other does not.

    side: who meets it. other: what the other side meets at that place, None where it goes on without. unpaired: how many
    collectives are left over there. leaves: the line of the test by which the other side may leave before it, 0 where it is
    kept away for certain.
    """

    side: Side
    meeting: Meeting
    other: Meeting | None
    unpaired: int = 1
    leaves: int = 0


@record
class Pairing:
    """What became of a function. left_over: what has no partner. sure: nothing is paired with an unknown call."""

    left_over: tuple[Mismatch, ...] = ()
    sure: bool = True


def mismatches(project: Project, module: SourceModule, function: FunctionNode | None) -> tuple[Mismatch, ...]:
    """The places in a function (None: the module's own statements) at which the ranks part, in source order."""
    return pairing(project, module, function).left_over


def pairing(project: Project, module: SourceModule, function: FunctionNode | None) -> Pairing:
    """Both sides' ways through a function, laid side by side; computed once for the project."""
    key = ("pairing", module.path, function.lineno if function else 0, function.col_offset if function else 0)
    return project.memo(key, lambda: _paired(project, module, function))


def _paired(project: Project, module: SourceModule, function: FunctionNode | None) -> Pairing:
    if not _may_part(project, module, function):
        return Pairing()
    zero, other = (trace_of(project, module, function, side) for side in (Side.ZERO, Side.OTHER))
    found = _Comparison()
    try:
        if zero == other:
            return Pairing()
        found.compare(zero.items, other.items)
        if found.out and (sure := _paired_on_each_way(zero.items, other.items)) is not None:
            return Pairing((), sure)
    except RecursionError:  # ways that could just be read, and are too deep to be laid side by side
        return Pairing((), False)
    seen: dict[int, Mismatch] = {}
    for mismatch in found.out:
        seen.setdefault(id(mismatch.meeting.node), mismatch)
    return Pairing(tuple(seen.values()), found.sure)


def _paired_on_each_way(a: Items, b: Items) -> bool | None:
    """Whether it is sure that both sides meet the same on each way through the tests that all make and by which all may leave.

    `if testing:` holds the barrier that lets the others in, and a `return`; behind it stands one for the other way. None where
    a way leaves something over.
    """
    ways = list(ways_out(a, b))
    if len(ways) < 2:
        return None
    sure = True
    for one, two in ways:
        found = _Comparison()
        found.compare(one, two)
        if found.out:
            return None
        sure = sure and found.sure
    return None if not sure and leaves_alone(a, b) else sure  # an unknown call in place of the meeting excuses no exit


def _may_part(project: Project, module: SourceModule, function: FunctionNode | None) -> bool:
    """False where no test of the rank holds a collective or an exit: so it is with most, and their functions are not read."""
    tests = project.memo(("partings", module.path), lambda: _partings(project, module)).get(id(function), ())
    return any(parts_ranks(project, module, function, node) for node in tests)


def _partings(project: Project, module: SourceModule) -> dict[int, list[ast.AST]]:
    """Function (by id) -> what in it may tell ranks apart."""
    found: dict[int, list[ast.AST]] = {}
    words = [w for w in ORDERED_CONTEXTS if w.encode() in module.data]
    nodes: list[ast.AST] = [*module.nodes(ast.Match)]
    entering: list[ast.With | ast.AsyncWith] = [*module.nodes(ast.With), *module.nodes(ast.AsyncWith)]
    nodes += [w for w in entering if words and any(last(dotted(_entered(i))) in words for i in w.items)]
    for branch in (ast.If, ast.While, ast.IfExp, ast.BoolOp):
        nodes += [n for n in module.nodes(branch) if speaks_of_ranks(module, module.function_of(n), project)]
    for node in nodes:
        found.setdefault(id(module.function_of(node)), []).append(node)
    return found


def _entered(item: ast.withitem) -> ast.expr:
    return item.context_expr.func if isinstance(item.context_expr, ast.Call) else item.context_expr


def mismatched_functions(project: Project, module: SourceModule) -> dict[str, int]:
    """Function (by its dotted name) -> how many collectives are left without a partner in it."""
    out: dict[str, int] = {}
    for function in (*module.functions, None):
        count = sum(m.unpaired for m in mismatches(project, module, function))
        if count:
            name = module.symbol(function) if function else ""
            out[name] = out.get(name, 0) + count
    return out


@record
class _Rest:
    """What follows for one side. here: to the end of this round, or of the function. again: in the next round of the loop.
    behind: behind the loop."""

    here: Items = ()
    again: Items = ()
    behind: Items = ()

    def after(self, items: Items) -> _Rest:
        return replace(self, here=(*items, *self.here))

    def in_a_round(self, items: Items) -> _Rest:
        """The same for the end of a round of a loop that meets `items`."""
        return _Rest((), items, self.whole)

    @property
    def whole(self) -> Items:
        return (*self.here, *self.again, *self.behind)

    def missed_by(self, end: str) -> Items:
        """What the exit leads past: who goes on with the next round comes to all but the end of this one."""
        return self.whole if end == "return" else (*self.here, *(self.again if end == "break" else ()))


class _Comparison:
    """Lays two ways side by side, and collects what is left over."""

    def __init__(self) -> None:
        self.out: list[Mismatch] = []
        self.sure = True

    def compare(self, a: Items, b: Items, after: tuple[_Rest, _Rest] = (_Rest(), _Rest())) -> None:
        """`a` is what rank 0 meets, `b` what the others do; `after`: what follows these for each."""
        at_a = at_b = 0
        for i, j in [*_pairs(a, b), (len(a), len(b))]:
            self.gap(a[at_a:i], b[at_b:j], after[0].after(a[i:]), after[1].after(b[j:]))
            at_a, at_b = i + 1, j + 1
            if i < len(a) and a[i] != b[j]:
                self.arms(a[i], b[j], after[0].after(a[i + 1 :]), after[1].after(b[j + 1 :]))

    def arms(self, x: Item, y: Item, rest_a: _Rest, rest_b: _Rest) -> None:
        """Two ways through the same test, or the same loop."""
        if not isinstance(x, Choice) or not isinstance(y, Choice) or len(x.arms) != len(y.arms):
            return
        for one, two in zip(x.arms, y.arms, strict=True):
            if x.loop and next(meetings((x, y)), None) is None:
                one, two = behind_loop(one), behind_loop(two)
            if x.loop:  # the next round comes first
                rest_a, rest_b = rest_a.in_a_round(one.items), rest_b.in_a_round(two.items)
            ends = {"" if x.loop and e == "continue" else e for e in (one.end, two.end)}
            if len(ends) == 1:
                self.compare(one.items, two.items, (rest_a, rest_b))
            elif "raise" not in ends:
                self.compare(followed(one, rest_a.whole, x.loop), followed(two, rest_b.whole, x.loop))

    def gap(self, a: Items, b: Items, rest_a: _Rest, rest_b: _Rest) -> None:
        """What stands between two pairs."""
        left, right = list(meetings(a)), list(meetings(b))
        if left and not holds_unknown(b):
            self.out.append(Mismatch(Side.ZERO, left[0], right[0] if right else None, len(left) + len(right)))
        elif right and not holds_unknown(a):
            self.out.append(Mismatch(Side.OTHER, right[0], left[0] if left else None, len(left) + len(right)))
        elif left or right:
            self.sure = False
        else:
            for leaving, side, rest in ((a, Side.OTHER, rest_b), (b, Side.ZERO, rest_a)):
                found = next((f for end in _EXITS if (f := _left_out(leaving, rest, end)) is not None), None)
                if found is not None:
                    self.out.append(Mismatch(side, found[1], None, leaves=found[0]))
                    break


_EXITS = ("return", "break", "continue")


def _left_out(leaving: Items, rest: _Rest, end: str) -> tuple[int, Meeting] | None:
    """The line of a test by which one side may leave, and the first meeting that it leads past."""
    line = _may_leave(leaving, end)
    missed = next(_certain(rest.missed_by(end)), None) if line else None
    return (line, missed) if missed is not None else None


def _may_leave(items: Items, end: str) -> int:
    """The line of a test that only this side makes and that can end in the exit, 0 without one; a loop is left by `return`."""
    for item in (i for i in items if isinstance(i, Choice)):
        within = item.loop and end != "return"  # it leaves, or goes on in, that loop alone
        for arm in item.arms if not within else ():
            inner = _may_leave(arm.items, end)
            if arm.end == end or inner:
                return (item.loop and inner) or item.key[0][1]
    return 0


def _certain(items: Items) -> Iterator[Meeting]:
    """The collectives that no test stands before: another test may be the exit's own, turned round."""
    for item in items:
        if isinstance(item, Meeting):
            yield item
        elif isinstance(item, Choice) and item.loop:
            yield from _certain(item.arms[0].items)


_SENDS = frozenset({"broadcast", "bcast", "Bcast", "broadcast_object_list", "broadcast_object", "scatter", "all_reduce"})


def _handed_over(items: Items) -> int:
    """Where one rank first sends something to the others: behind it, how often a loop runs may be what it sent."""
    sent = (i for i, item in enumerate(items) if isinstance(item, Meeting) and item.name in _SENDS)
    return next(sent, len(items))


def _weight(x: Item, y: Item, *, counted: bool = False) -> int:
    """How much is won by pairing two items, 0 where they are no pair. counted: the rounds of loops may be the same number."""
    if isinstance(x, Meeting) and isinstance(y, Meeting):
        return 0 if x.name != y.name else _HEAVY + (1 if x.key == y.key else 0)
    if isinstance(x, Unknown) and isinstance(y, Unknown):
        return 1 if x.key == y.key else 0
    if isinstance(x, Choice) and isinstance(y, Choice) and x.key == y.key:
        return 2 + _HEAVY * min(len(list(meetings((x,)))), len(list(meetings((y,)))))
    if isinstance(x, Choice) and isinstance(y, Choice) and (x.over & y.over or (counted and x.loop and y.loop)):
        met, there = ([m.name for m in meetings((choice,))] for choice in (x, y))
        return 1 + _HEAVY * len(met) if met == there else 0
    return 0


def _pairs(a: Items, b: Items) -> list[tuple[int, int]]:
    """The heaviest common subsequence, as pairs of positions."""
    head = 0
    while head < min(len(a), len(b)) and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < min(len(a), len(b)) - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    inner_a, inner_b = a[head : len(a) - tail], b[head : len(b) - tail]
    found = [(i, i) for i in range(head)]
    if 0 < len(inner_a) <= _WIDEST and 0 < len(inner_b) <= _WIDEST:
        found += [(i + head, j + head) for i, j in _heaviest(inner_a, inner_b)]
    return found + [(len(a) - t, len(b) - t) for t in range(tail, 0, -1)]


def _heaviest(a: Items, b: Items) -> list[tuple[int, int]]:
    best = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    handed = _handed_over(a), _handed_over(b)
    for i in range(len(a) - 1, -1, -1):
        for j in range(len(b) - 1, -1, -1):
            weight = _weight(a[i], b[j], counted=i > handed[0] and j > handed[1])
            paired = best[i + 1][j + 1] + weight if weight else 0
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    out = []
    i = j = 0
    while i < len(a) and j < len(b):
        weight = _weight(a[i], b[j], counted=i > handed[0] and j > handed[1])
        if weight and best[i][j] == best[i + 1][j + 1] + weight:
            out.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return out
