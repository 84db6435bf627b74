"""Tests for rank 0 that a function or its class makes, and whether they can be made at another place, too."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in, bindings_of, only_value
from codemods.analysis.bound_values import assigned
from codemods.analysis.call_graph import called_function
from codemods.analysis.conditions import conjuncts
from codemods.analysis.names import dotted, qualified
from codemods.analysis.output.global_ranks import is_text
from codemods.analysis.output.minus_one import writes_minus_one
from codemods.analysis.output.run_before import binds, run_before
from codemods.analysis.output.set_attributes import is_sure_to_be_set
from codemods.analysis.output.spelled_test import Spelling
from codemods.analysis.output.stored_keys import is_stored_before
from codemods.analysis.ranks.rank_guards import Ranks, ranks_of_test
from codemods.analysis.ranks.rank_tests import asks_the_rank
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

_STATES = ("PartialState", "AcceleratorState")

def known_anyway(project: Project, module: SourceModule, statement: ast.stmt, *, lines: bool) -> Spelling | None:
    """A test that the function makes elsewhere, alone or beside `and`, of what is known at the place, too: a parameter that keeps
    its value, a name that is bound above, a field that the constructor sets; of such a field also one of the class.
    """
    function = module.function_of(statement)
    if function is None:
        return None
    wanted = (Ranks.ZERO, Ranks.LOCAL_ZERO) if lines else (Ranks.ZERO,)
    for ranks in wanted:
        for test in _tests_near(module, function):
            if asks_the_rank(module, test, project) and ranks_of_test(module, test, project=project) is ranks:
                if is_sure(module, test) and not silences_one_process(project, module, test):
                    if _is_known_at(project, module, function, test, statement):
                        return Spelling(module.text_of(test))
    return None


def _tests_near(module: SourceModule, function: FunctionNode) -> Iterator[ast.expr]:
    """The parts of the tests of a function, then those of its class that ask a field."""
    own = list(_parts(function))
    yield from own
    owner = module.parent(function)
    if isinstance(owner, ast.ClassDef):
        seen = {id(part) for part in own}
        for part in _parts(owner):
            if id(part) not in seen and all(n.id == "self" for n in walk(part) if isinstance(n, ast.Name)):
                yield part


def _parts(scope: ast.AST) -> Iterator[ast.expr]:
    tests = (n.test for n in walk(scope) if isinstance(n, ast.If))
    parts = (part for test in tests for part in conjuncts(test))
    return (p for p in parts if not isinstance(p, (ast.BoolOp, ast.UnaryOp)))


def _is_known_at(
    project: Project, module: SourceModule, function: FunctionNode, test: ast.expr, statement: ast.stmt
) -> bool:
    names = [n for n in (test, *walk(test)) if isinstance(n, ast.Name)]
    for name in names:
        held = module.parent(name)
        if name.id == "self":
            if not isinstance(held, ast.Attribute) or not is_sure_to_be_set(project, module, statement, held.attr):
                return False
            continue
        bound = bindings_in(module, function, name.id)
        kept = bool(bound) and all(b.parameter for b in bound) and not isinstance(held, (ast.Attribute, ast.Subscript))
        if not kept and not is_bound_before(module, name, statement):
            return False
    return bool(names)


def silences_one_process(project: Project, module: SourceModule, test: ast.expr) -> bool:
    """True for `rank == 0` where the file, or transformers below 5, writes -1 for a run without a process group.

    So for a flag that holds more than the rank: `args.saves = args.out and rank == 0`. What stands under such a test already is
    not printed by one process; what every process prints must stay.
    """
    if isinstance(test, (ast.Name, ast.Attribute)) and _holds_more_than_the_rank(project, module, test):
        return True
    text = module.text_of(test)
    if "-1" in text or not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq):
        return False
    return writes_minus_one(module) or ("local_rank" in text and module.holds(b"transformers"))


def _holds_more_than_the_rank(project: Project, module: SourceModule, flag: ast.Name | ast.Attribute) -> bool:
    name = dotted(flag)
    values = assigned(module, flag, name)
    if isinstance(flag, ast.Attribute) and not values:
        values = [a.value for a in module.nodes(ast.Assign) if any(dotted(t) == name for t in a.targets)]
    joined = [v for v in values if isinstance(v, ast.BoolOp) and isinstance(v.op, ast.And)]
    return any(not asks_the_rank(module, part, project) for value in joined for part in conjuncts(value))


def is_bound_before(module: SourceModule, name: ast.Name, statement: ast.stmt) -> bool:
    """True for a flag that every path has bound above the place, in both branches of an `if` say, and nothing below it.

    So with a field of Accelerate's own state, `state = PartialState()`, which has all of them from the beginning.
    """
    held = module.parent(name)
    if isinstance(held, ast.Attribute) and not _is_state_of_accelerate(module, name):
        return False
    if isinstance(held, ast.Subscript) and held.value is name:
        return is_stored_before(module, held, statement)  # `params["main"]`: the dict alone does not have it yet
    bound = [b for b in bindings_of(module, name) if not b.parameter]
    if not bound or any(module.statement_of(b.node).lineno >= statement.lineno for b in bound):
        return False
    return any(binds(s, name.id) for place in _places(module, statement) for s in run_before(module, place))


def _is_state_of_accelerate(module: SourceModule, name: ast.Name) -> bool:
    """True for a name with the one value `PartialState()` or `AcceleratorState()`."""
    value = only_value(bindings_of(module, name))
    made = qualified(module, value.func) if isinstance(value, ast.Call) else ""
    return made.startswith("accelerate.") and made.rpartition(".")[2] in _STATES


def _places(module: SourceModule, statement: ast.stmt) -> Iterator[ast.stmt]:
    """The statement, and the definitions of the functions round it: what has run above those has run when it begins."""
    yield statement
    yield from (up for up in module.ancestors(statement) if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)))


def is_field_set_before(project: Project, module: SourceModule, name: ast.Name, statement: ast.stmt) -> bool:
    """True for `args.rank` where the function of the place has set it above, and it is the same where it is asked further down:
    nothing sets it in between, nor does a function that is handed the object.
    """
    field, function = module.parent(name), module.function_of(statement)
    if not isinstance(field, ast.Attribute) or function is None or name.id in ("self", "cls"):
        return False
    stored = [n for n in module.nodes(ast.Attribute) if isinstance(n.ctx, ast.Store) and n.attr == field.attr]
    places = [module.statement_of(n) for n in stored if dotted(n.value) == name.id and module.function_of(n) is function]
    before = {id(s) for s in run_before(module, statement)}
    above = [p for p in places if id(p) in before]
    if not above or any(p.lineno >= statement.lineno or isinstance(getattr(p, "value", None), ast.Constant) for p in places):
        return False
    rebound = [module.statement_of(b.node).lineno for b in bindings_of(module, name) if not b.parameter]
    if any(line > above[-1].lineno for line in rebound):
        return False
    between = (c for c in module.nodes(ast.Call) if statement.lineno < c.lineno < name.lineno)
    return not any(_sets(project, module, c, name.id, field.attr) for c in between)


def _sets(project: Project, module: SourceModule, call: ast.Call, name: str, field: str) -> bool:
    """True where a function of the project that is handed an object sets a field of that name, of whatever."""
    given = [*call.args, *(k.value for k in call.keywords)]
    if not any(isinstance(g, ast.Name) and g.id == name for g in given):
        return False
    site = called_function(project, module, call)
    nodes = walk(site.node) if site is not None else ()
    return any(isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) and n.attr == field for n in nodes)


def is_sure(module: SourceModule, test: ast.expr) -> bool:
    """False for a test that needs a process group: what calls `dist.get_rank()` may stand behind `is_initialized()`.

    And for one that never holds: a number beside the text of an environment variable.
    """
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and any(is_text(module, side) for side in (node.left, *node.comparators)):
            if any(isinstance(side, ast.Constant) and isinstance(side.value, int) for side in node.comparators):
                return False
        if isinstance(node, ast.Call) and node.args:
            return False
        if isinstance(node, ast.Call) and qualified(module, node.func).startswith("torch."):
            return False
    return True
