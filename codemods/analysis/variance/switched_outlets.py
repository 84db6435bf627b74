"""Methods that show what they are handed where a field of their object is set, on rank 0 alone: `if self.enabled:`."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import ClassSite
from codemods.analysis.ranks.rank_branches import known_split
from codemods.analysis.ranks.rank_sets import Ranks
from codemods.analysis.variance.analysis import Analysis
from codemods.analysis.variance.outlets import says_shown
from codemods.analysis.variance.paths import own_field, parameters, path_of
from codemods.analysis.variance.values import Cause, How, Link, Proof, Value
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.runtime.lazy_pattern import lazy

_ZERO = (Ranks.ZERO, Ranks.LOCAL_ZERO)
_TURNS = lazy(r"\bnot\b|!=|\belse\b")  # on the way from the test of the rank to the field


def shows_where_switched_on(analysis: Analysis, site: FunctionSite) -> bool:
    """True for a method that shows what it is handed under `if self.enabled:` alone, where rank 0 alone has enabled it."""
    owner = site.module.parent(site.node)
    if not isinstance(owner, ast.ClassDef):
        return False
    key = ("shows where switched on", site.module.path, site.node.lineno, site.node.name)
    return analysis.project.keep(key, lambda: _shows(analysis, ClassSite(site.module, owner), site.node))


def _shows(analysis: Analysis, owner: ClassSite, method: FunctionNode) -> bool:
    given = set(parameters(method)) - {"self", "cls"}
    showing = [c for c in walk_scope(method) if isinstance(c, ast.Call) and says_shown(c) and _is_handed(c, given)]
    switches = [_switches(owner.module, method, c) for c in showing]
    return bool(showing) and all(any(_is_of_zero(analysis, owner, f) for f in fields) for fields in switches)


def _is_handed(call: ast.Call, names: set[str]) -> bool:
    given = (n for a in (*call.args, *(k.value for k in call.keywords)) for n in walk(a))
    return any(isinstance(n, ast.Name) and n.id in names for n in given)


def _switches(module: SourceModule, method: FunctionNode, call: ast.Call) -> list[str]:
    """The fields that all have to be set where the call runs."""
    tests = [t for s in method.body if isinstance(s, ast.If) and s.lineno < call.lineno for t in _asked_first(s)]
    below: ast.AST = call
    for up in module.ancestors(call):
        if isinstance(up, ast.If) and below in up.body:
            tests += _all_of(up.test)
        if up is method:
            break
        below = up
    return [field for test in tests if (field := own_field(path_of(test)))]


def _asked_first(statement: ast.If) -> list[ast.expr]:
    """`self.enabled` of `if not self.enabled: return`."""
    test, leaves = statement.test, isinstance(statement.body[-1], ast.Return) and not statement.orelse
    return [test.operand] if leaves and isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else []


def _all_of(test: ast.expr) -> list[ast.expr]:
    return list(test.values) if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def _is_of_zero(analysis: Analysis, owner: ClassSite, field: str) -> bool:
    value = analysis.field(owner, field)
    if value.cause is not Cause.RANK or value.proof is not Proof.PROVEN or not value.chain:
        return False
    *way, origin = value.chain
    turned = any(_may_turn(analysis, link) for link in way if (link.path, link.line) != (origin.path, origin.line))
    return origin.how is How.ASKS_RANK and not turned and _is_test_for_zero(analysis, value)


def _may_turn(analysis: Analysis, link: Link) -> bool:
    """True for a step that may turn the answer round: `Board(quiet=not is_main)`."""
    module = analysis.project.module(link.path)
    kinds: tuple[type[ast.stmt | ast.expr], ...] = (ast.Assign, ast.AnnAssign, ast.Call)
    steps = [n for kind in kinds for n in module.nodes(kind)] if module is not None else []
    here = [n for n in steps if n.lineno <= link.line <= (n.end_lineno or n.lineno)]
    return module is None or any(_TURNS.search(module.text_of(n)) for n in here)


def _is_test_for_zero(analysis: Analysis, value: Value) -> bool:
    """True where the outermost test of the rank in the line that it comes from holds on rank 0 alone."""
    origin = value.chain[-1]
    module = analysis.project.module(origin.path)
    if module is None:
        return False
    kinds: tuple[type[ast.expr], ...] = (ast.IfExp, ast.Compare, ast.BoolOp, ast.UnaryOp)
    tests = [n for kind in kinds for n in module.nodes(kind) if n.lineno <= origin.line <= (n.end_lineno or n.lineno)]
    splits = [(n, s) for n in tests if (s := known_split(module, n, analysis.project)) is not None]
    inner = {id(below) for n, _ in splits for below in walk(n) if below is not n}
    outer = [s for n, s in splits if id(n) not in inner]
    return len(outer) == 1 and outer[0].true in _ZERO
