"""What an expression decides as a test."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.class_index import class_facts
from codemods.analysis.class_values import class_values
from codemods.analysis.literals import is_none
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.rank_branches import known_split
from codemods.analysis.ranks.rank_sets import Ranks
from codemods.analysis.variance.empty_samples import emptiness_of_sample
from codemods.analysis.variance.paths import own_field
from codemods.analysis.variance.shares import length_of
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import SAME, UNKNOWN, Cause, How, Proof, Value, differing, join, made_of, plain
from codemods.data.rank_variance import IS_KIND
from codemods.files.source import walk
from codemods.runtime.record import replace

_ASKED_BY_PYTHON = frozenset({"__len__", "__bool__", "__iter__", "__next__", "__getitem__", "__contains__", "__call__"})


def test_value(state: State, node: ast.expr) -> Value:
    """What an expression decides as a test: whether something is there at all is another question than what it holds."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return test_value(state, node.operand)
    if isinstance(node, ast.BoolOp):
        return join(plain(test_value(state, v)) for v in node.values)
    split = known_split(state.module, node, state.project)
    if split is not None and split.true is not Ranks.ALL:
        proof = Proof.LIKELY if Ranks.UNKNOWN in (split.true, split.false) else Proof.PROVEN
        return differing(Cause.RANK, proof, state.link(node, f"`{state.short(node)}` asks for the rank", how=How.ASKS_RANK))
    if isinstance(node, ast.Compare):
        return _compared(state, node)
    if isinstance(node, ast.Call) and last(dotted(node.func)) in IS_KIND:
        state.value(node)
        return _presence_of_kind(state, node)
    value = state.value(node)
    if value.thing is not None or value.parts or _is_loader(node):
        return _presence(state, node, value)
    if value.listed and isinstance(node, (ast.Name, ast.Attribute)):
        return length_of(value)  # `if not found:`
    if isinstance(node, ast.Name) and _holds_entries(state, node):
        return length_of(value)
    held = isinstance(node, ast.Name) and state.is_parameter(node.id) and value.params == {node.id} and not value.cause.differs
    return replace(plain(value), truths=value.params) if held else plain(value)


def _is_loader(node: ast.expr) -> bool:
    """True for `val_loader` as a test, which asks whether there is one."""
    return isinstance(node, (ast.Name, ast.Attribute)) and last(dotted(node)).lower().endswith("loader")


def _holds_entries(state: State, name: ast.Name) -> bool:
    """True for a name whose keys or entries the function goes through: as a test it asks whether there are any."""
    function = state.module.function_of(name)
    uses = (n for n in state.module.reads_of(name.id) if state.module.function_of(n) is function)
    return any(isinstance(up := state.module.parent(n), ast.Attribute) and up.attr in ("keys", "items", "values") for n in uses)


def _compared(state: State, node: ast.Compare) -> Value:
    ends = [node.left, *node.comparators]
    if any(_is_bound_method(e) for e in ends):
        return SAME
    if any(is_none(e) for e in ends):
        return _presence(state, node, join(state.value(e) for e in ends))
    if all(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops):
        if _is_text(state, node.left):
            return SAME  # a key that a batch or a configuration has
        number = isinstance(node.left.operand if isinstance(node.left, ast.UnaryOp) else node.left, ast.Constant)
        if not number and not state.value(node.left).cause.differs:
            held = state.value(ends[-1])
            if not _is_key(state, node.left, ends[-1]):
                return length_of(held)
            return plain(held) if held.keyed and held.cause.differs else UNKNOWN if held.params else SAME
    if _asks_for_launcher(state, node):
        return SAME
    if (empty := emptiness_of_sample(state, node)) is not None:
        state.value(node.left)
        return empty
    if (counted := _asked_for_any(node)) is not None:
        state.value(node.left)
        return length_of(state.value(counted))
    found = state.values[id(node)] = made_of(*(state.value(e) for e in ends))
    if all(isinstance(op, (ast.Eq, ast.NotEq)) for op in node.ops) and _are_of_one_clock([state.value(e) for e in ends]):
        return UNKNOWN
    return found


def _are_of_one_clock(ends: list[Value]) -> bool:
    """True for two names that hold one time of the process: whether they are equal is up to what else they are made of."""
    origins = {v.origin for v in ends}
    return len(ends) > 1 and len(origins) == 1 and all(v.origin is not None and v.origin.how is How.CLOCK for v in ends)


def _asks_for_launcher(state: State, node: ast.Compare) -> bool:
    """True for `local_rank() >= 0`: whether a launcher has set the rank has one answer for all that it started."""
    op, bound = node.ops[0], node.comparators[0]
    value = state.value(node.left)
    if len(node.ops) > 1 or not _is_the_rank(value) or len(value.chain) > 1 or not isinstance(node.left, ast.Call):
        return False
    if isinstance(bound, ast.Constant):
        return bound.value == 0 and isinstance(op, (ast.GtE, ast.Lt))
    return ast.unparse(bound) == "-1" and isinstance(op, (ast.Gt, ast.LtE, ast.Eq, ast.NotEq))


def _asked_for_any(node: ast.Compare) -> ast.expr | None:
    """`x` of `x.numel() == 0`: padding makes a batch wider, and never empty."""
    left, right = node.left, node.comparators[0]
    if len(node.ops) > 1 or not isinstance(right, ast.Constant) or right.value != 0 or not isinstance(left, ast.Call):
        return None
    func = left.func
    return func.value if isinstance(func, ast.Attribute) and func.attr in ("numel", "nelement") and not left.args else None


def _is_key(state: State, key: ast.expr, holder: ast.expr) -> bool:
    """True for `if k in d:` of a function that reads `d[k]`: which keys there are is no matter of how long the entries are."""
    read = f"{ast.unparse(holder)}[{ast.unparse(key)}]"
    function = state.module.function_of(key)
    inner = walk(function) if function is not None else state.module.nodes(ast.Subscript)
    return any(isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Load) and ast.unparse(n) == read for n in inner)


def _is_bound_method(node: ast.expr) -> bool:
    """True for `rows.__len__` without a call: a method is equal to no number, whatever the rows are."""
    return isinstance(node, ast.Attribute) and node.attr in _ASKED_BY_PYTHON


def _is_text(state: State, node: ast.expr) -> bool:
    """True for a text, also by a name or as what `getattr` gives in place of a missing one."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.Call):
        return dotted(node.func) == "getattr" and len(node.args) == 3 and _is_text(state, node.args[2])
    bound = bindings_of(state.module, node) if isinstance(node, ast.Name) else []
    value = bound[0].value if len(bound) == 1 else None  # which of several it is may differ
    return isinstance(value, (ast.Constant, ast.Call)) and _is_text(state, value)


def _is_the_rank(value: Value) -> bool:
    """True for the number itself, which every rank has: nothing that only some ranks were given."""
    return value.origin is not None and value.origin.how is How.RANK


def _presence_of_kind(state: State, node: ast.Call) -> Value:
    """`if not isinstance(rows, Batch): continue` of what may be None on a rank: what it is else, is wanted."""
    value = state.value(node.args[0]) if node.args and dotted(node.func) == "isinstance" else SAME
    turned, statement = state.module.parent(node), state.module.statement_of(node)
    if not (value.optional or value.missing) or not isinstance(turned, ast.UnaryOp) or not isinstance(turned.op, ast.Not):
        return SAME
    leaves = isinstance(statement, ast.If) and isinstance(statement.body[-1], (ast.Continue, ast.Break, ast.Return))
    return _presence(state, node.args[0], value) if leaves else SAME


def _presence(state: State, node: ast.expr, value: Value) -> Value:
    """Whether something is there: it differs where the value may be missing on a rank, or only some ranks were given one."""
    if value.params and not value.cause.differs:
        value = _of_fields(state, node, value)
    given = value.cause is Cause.RANK and not value.decided and not _is_the_rank(value)
    if value.optional or given:
        return plain(replace(value, optional=False))
    if value.missing:
        return Value(Cause.UNKNOWN, Proof.UNKNOWN, params=value.missing)
    return UNKNOWN if value.params else SAME


def _of_fields(state: State, node: ast.expr, value: Value) -> Value:
    """What fields of the object hold that are set in its constructor: `self.folder is not None`."""
    owner = state.own_class(node)
    names = {own_field(p) for p in value.params}
    if owner is None or "" in names or len(names) != 1:
        return value
    name = names.pop()
    if not class_values(state.project, class_facts(state.project, owner.module, owner.node)).set_once(name):
        return value
    found = state.summaries.field(owner, name)
    return found if found.cause is Cause.RANK and found.optional else value
