"""Learning rates that each rank sets by a number of its own: the ranks step alike gradients by steps of other lengths."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.variance.analysis import Analysis
from codemods.analysis.variance.partings import Form, Mismatch
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import SAME, Cause
from codemods.data.rank_variance import BACKWARDS
from codemods.files.source import SourceModule, walk, walk_block

_SETTINGS = frozenset({"lr", "learning_rate", "weight_decay", "momentum", "betas"})
_OWN = (Cause.DATA, Cause.PLACE)


def own_rates(analysis: Analysis, state: State) -> Iterator[Mismatch]:
    """`if loss.item() > limit: group["lr"] *= 0.5`, in a function that comes to the backward pass of the wrapped model."""
    if not state.is_parallel or not state.module.holds(b"param_groups"):
        return
    if not any(m.name in BACKWARDS for meetings in state.met.values() for m in meetings):
        return  # a rank that optimizes something of its own may go its own way
    told: set[int] = set()
    for node in (n for n in walk_block(state.body) if isinstance(n, (ast.Assign, ast.AugAssign))):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if not _is_setting(state.module, target) or _is_of_tensors(state.module, target):
            continue
        if ranks_reaching(analysis.project, state.module, node).some:
            continue
        for up in (u for u in state.module.ancestors(node) if isinstance(u, ast.If) and id(u) not in told):
            value = analysis.resolved(state.site, state.tests.get(id(up.test), SAME))
            if value.differs and value.cause in _OWN and not value.decided:
                told.add(id(up))
                yield Mismatch(Form.RATE, up, value, None)
                break


def _groups(module: SourceModule, target: ast.expr) -> ast.expr | None:
    """`optimizer.param_groups` of such a setting."""
    group = target.value if isinstance(target, ast.Subscript) else None
    if isinstance(group, ast.Subscript):
        return group.value
    loops = [b.node for b in bindings_of(module, group)] if isinstance(group, ast.Name) else []
    sources = [n for loop in loops if isinstance(loop, ast.For) for n in (loop.iter, *walk(loop.iter))]
    return next((n for n in sources if isinstance(n, ast.Attribute) and n.attr == "param_groups"), None)


def _is_of_tensors(module: SourceModule, target: ast.expr) -> bool:
    """True for `Adam([delta])`: what a rank changes of its own batch, not the model."""
    groups = _groups(module, target)
    holder = groups.value if isinstance(groups, ast.Attribute) else None
    bound = bindings_of(module, holder) if isinstance(holder, ast.Name) else []
    given = [b.value.args[0] for b in bound if isinstance(b.value, ast.Call) and b.value.args]
    return any(isinstance(g, (ast.List, ast.Tuple)) and any(isinstance(e, ast.Name) for e in g.elts) for g in given)


def _is_setting(module: SourceModule, target: ast.expr) -> bool:
    """`optimizer.param_groups[0]["lr"]`, and `group["lr"]` of a loop over the groups."""
    if not isinstance(target, ast.Subscript) or not isinstance(target.slice, ast.Constant) or target.slice.value not in _SETTINGS:
        return False
    groups = _groups(module, target)
    return groups is not None and last(dotted(groups)) == "param_groups"
