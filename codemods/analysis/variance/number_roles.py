"""What a number of one rank is used for: the curve of a training, the result of an evaluation, or a decision."""

from __future__ import annotations

import ast
import re
from enum import Enum

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.analysis import Analysis
from codemods.analysis.variance.paths import path_of, unpacked
from codemods.analysis.variance.state import STEP, State
from codemods.analysis.variance.values import Cause, How, Kind, Link, Proof, Value
from codemods.data.rank_variance import BACKWARDS, LOADER_NAMES
from codemods.files.source import SourceModule, called_name, walk
from codemods.runtime.record import record

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_IN_LINE = (ast.ListComp, ast.GeneratorExp)  # `[loss(model(x), y) for x, y in loader]`
_Loop = ast.stmt | ast.expr
_EVALUATES = re.compile(
    r"(^|_)(val|valid|validate|validation|eval|evaluate|evaluation|test|testing|dev|inference|predict)(_|$)", re.I
)


class Role(Enum):
    """From the lightest to the heaviest."""

    CURVE = "it is drawn or printed while the training runs"
    BESIDE = "it is drawn by the side of a number of all ranks"
    RESULT = "it is reported as what an evaluation came to"
    DECIDES = "it decides"


@record
class Source:
    """loop: the loop over batches that the number comes from, None where it is not seen. trains: that loop trains.

    over: what it goes through, if it is batches.
    """

    path: str
    loop: _Loop | None
    trains: bool
    over: Value | None = None
    line: int = 0

    def is_behind(self, module: SourceModule, node: ast.AST, value: Value) -> bool:
        """True where the node stands behind the loop, and not in what the loop calls."""
        if self.loop is None or (module.path == self.path and self._is_round(module, node)):
            return False
        return not any(x.how is How.HANDED and x.path == self.path and self.holds(x.line) for x in value.chain)

    def _is_round(self, module: SourceModule, node: ast.AST) -> bool:
        if isinstance(self.loop, ast.expr):  # what shows it may stand round it, in the same line
            return any(up is self.loop for up in module.ancestors(node))
        return self.holds(getattr(node, "lineno", 0))

    def holds(self, line: int) -> bool:
        return self.loop is not None and self.loop.lineno <= line <= (self.loop.end_lineno or line)

    @property
    def key(self) -> tuple[str, int]:
        return self.path, self.loop.lineno if self.loop is not None else self.line


def source_of(analysis: Analysis, module: SourceModule, shown: ast.AST, value: Value) -> Source:
    """Where the batches of a number are gone through, from the far end of its way to the place that shows it."""
    links = [(link, m) for link in reversed(value.chain) if (m := analysis.project.module(link.path)) is not None]
    handed = [(link, m) for link, m in links if link.how is How.HANDED]
    own = [(link, m) for link, m in links if link.how is not How.HANDED]
    for among in (own, handed):
        if (found := _first(analysis, among, _Fits.BATCHES)) is not None:
            return found
    loops = [up for up in module.ancestors(shown) if isinstance(up, _LOOPS)]
    if (trains := next((up for up in loops if _trains(analysis, module, up)), None)) is not None:
        return Source(module.path, trains, True)
    function = module.function_of(shown)
    state = state_of(analysis, module, shown)
    if state is not None and any(m.name in BACKWARDS for meetings in state.met.values() for m in meetings):
        return Source(module.path, None, True, line=function.lineno if function is not None else 0)
    for fits in (_Fits.ELEMENTS, _Fits.ANY):
        if (found := _first(analysis, own, fits)) is not None:
            return found
    named = function.name if function is not None else ""
    evaluates = any(_EVALUATES.search(w) for w in _words(value)) and "train" not in named
    line = function.lineno if function is not None else 0
    return Source(module.path, None, not _EVALUATES.search(named) and not evaluates, line=line)


def _first(analysis: Analysis, among: list[tuple[Link, SourceModule]], fits: _Fits) -> Source | None:
    found: tuple[SourceModule, _Loop] | None = None
    for link, place in among:
        loop = _loop_at(analysis, place, link, fits)
        if loop is not None and (found is None or _is_nearer(place, loop, found)):
            found = place, loop  # of loops in each other the inner one: its sums are set to nothing in the outer one
    if found is None:
        return None
    return Source(found[0].path, found[1], _trains(analysis, *found), _over(analysis, *found))


def _is_nearer(module: SourceModule, loop: _Loop, found: tuple[SourceModule, _Loop]) -> bool:
    """True for a loop inside of the one that was found, unless it goes through what a round of that one makes."""
    if found[0] is not module or found[1] is loop or not _holds(found[1], loop):
        return False
    source = _gone_through(loop)
    name = dotted(unpacked(source)) if source is not None else ""
    if not name or LOADER_NAMES.search(last(name)):
        return True
    made = (path_of(t) for n in walk(found[1]) if isinstance(n, ast.Assign) for target in n.targets for t in _targets(target))
    return name not in made  # `for part in losses:` of the batch's own losses


def _targets(target: ast.expr) -> list[ast.expr]:
    return list(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else [target]


def _holds(outer: _Loop, inner: _Loop) -> bool:
    return outer.lineno < inner.lineno <= (outer.end_lineno or outer.lineno)


def _words(value: Value) -> list[str]:
    return [w for link in value.chain for w in re.findall(r"\w+", link.text)]


class _Fits(Enum):
    """Which loops are looked for: over the batches of a loader, over anything but numbers and entries, any."""

    BATCHES = 0
    ELEMENTS = 1
    ANY = 2


def _loop_at(analysis: Analysis, module: SourceModule, link: Link, fits: _Fits) -> _Loop | None:
    """The innermost such loop round the line of a step."""
    kinds: tuple[type[_Loop], ...] = (*_IN_LINE, *_LOOPS) if fits is _Fits.BATCHES else _LOOPS
    found = [n for kind in kinds for n in module.nodes(kind) if n.lineno <= link.line <= (n.end_lineno or n.lineno)]
    for loop in sorted(found, key=lambda n: -n.lineno):
        if fits is _Fits.ANY or (not _counts(loop) and (fits is _Fits.ELEMENTS or _is_over_batches(analysis, module, loop))):
            return loop
    return None


def _is_over_batches(analysis: Analysis, module: SourceModule, loop: _Loop) -> bool:
    return _over(analysis, module, loop) is not None


def _over(analysis: Analysis, module: SourceModule, loop: _Loop) -> Value | None:
    """What a loop goes through, where that is a loader."""
    source = _gone_through(loop)
    state = state_of(analysis, module, loop) if source is not None else None
    if state is None or source is None or id(source) not in state.tests:
        return None
    here = state.tests[id(source)]
    value = analysis.resolved(state.site, here)
    known = here if isinstance(loop, ast.expr) else value  # an element of a batch is resolved to the loader, too
    named = any(LOADER_NAMES.search(last(dotted(n))) for n in walk(source) if isinstance(n, (ast.Name, ast.Attribute)))
    share = value.cause is Cause.DATA and here.chain and here.chain[-1].how is How.SHARE and here.proof is Proof.PROVEN
    return value if named or share or Kind.LOADER in (known.kind, *(p.kind for p in known.parts)) else None


def _gone_through(loop: _Loop) -> ast.expr | None:
    if isinstance(loop, _IN_LINE):
        return loop.generators[0].iter
    return loop.iter if isinstance(loop, (ast.For, ast.AsyncFor)) else None


def state_of(analysis: Analysis, module: SourceModule, node: ast.AST) -> State | None:
    """The function round a node, as it was interpreted."""
    function = module.function_of(node)
    return analysis.of(FunctionSite(module, function)) if function is not None else analysis.top_level(module)


def _counts(loop: _Loop) -> bool:
    """True for a loop over numbers, over the entries of a dict, or over a few names: no batches."""
    source = _gone_through(loop)
    if source is None:
        return True
    over = unpacked(source)
    if isinstance(over, (ast.Tuple, ast.List, ast.Constant)):
        return True
    if isinstance(over, ast.Call):
        return called_name(over) in ("range", "trange", "items", "keys", "values", "arange", "zip_longest")
    name = last(dotted(over))
    return bool(re.search(r"keys|names|metrics|losses|steps$|epochs$|class", name, re.I))


def _trains(analysis: Analysis, module: SourceModule, loop: _Loop) -> bool:
    """True where each round makes a backward pass, or a step of the optimizer, behind calls too."""
    state = state_of(analysis, module, loop)
    for node in (n for n in walk(loop) if isinstance(n, ast.Call)):
        end = called_name(node)
        if end in BACKWARDS or "scaler" in end.lower():
            return True
        if state is not None and any(m.name in (STEP, *BACKWARDS) for m in state.met.get(id(node), ())):
            return True
    return False
