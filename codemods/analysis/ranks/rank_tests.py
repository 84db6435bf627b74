"""What a test says of ranks: the processes for which it can be true, and those for which it can be false."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import Binding, attribute_bindings, bindings_of
from codemods.analysis.call_graph import FunctionSite, called_function, may_speak_of_ranks
from codemods.analysis.names import dotted, end_of
from codemods.analysis.ranks.emptied_elsewhere import split_of_emptied
from codemods.analysis.ranks.experiment_tests import split_of_experiment
from codemods.analysis.ranks.flag_branches import tests_of_flag
from codemods.analysis.ranks.keyword_fields import keyword_values
from codemods.analysis.ranks.parts import part_of, place_of
from codemods.analysis.ranks.process_modes import several_by_mode
from codemods.analysis.ranks.rank_comparisons import comparison, is_text
from codemods.analysis.ranks.rank_keys import item_values
from codemods.analysis.ranks.rank_members import called_sites, field_bindings, inherited_bindings, properties, record_values
from codemods.analysis.ranks.rank_sets import Ranks, Split, both, negated
from codemods.analysis.ranks.rank_sources import DEPTH, imported_value, low_rank_place, rank_source, shows_processes
from codemods.analysis.ranks.several_processes import several_processes
from codemods.analysis.ranks.training_options import is_training_arguments
from codemods.analysis.ranks.wandb_runs import split_of_run
from codemods.analysis.ranks.zero_only_values import split_of_partial, split_of_value
from codemods.data.rank_names import ARGUMENT_FLAGS, GLOBAL_NAMES, LOCAL_FLAGS, LOCAL_NAMES, OTHER_FLAGS, WEAK_FLAGS, ZERO_FLAGS
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.store.project import Project

# Calls that give a rank by themselves.
_READS = frozenset({"int", "get_rank", "_get_rank", "Get_rank", "rank"}) | GLOBAL_NAMES | LOCAL_NAMES
_PLAIN = 4  # from this depth on a test is read without asking what only rank 0 has: that is found by such tests
_NONE_OPS = (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)


def split_of(module: SourceModule, test: ast.AST, project: Project | None = None, depth: int = 0) -> Split | None:
    """What a test says of ranks; None where it has nothing to do with them.

    `rank in (-1, 0)` counts as rank 0: -1 is how a run without a process group is written. So does `rank is None or …`.
    """
    if depth > DEPTH:
        return None
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = split_of(module, test.operand, project, depth + 1)
        return inner.turned if inner else None
    if isinstance(test, ast.Compare):
        return _compared(module, test, project, depth)
    if isinstance(test, ast.BoolOp):
        return _joined(module, test, project, depth)
    if isinstance(test, ast.IfExp):
        return _conditional(module, test, project, depth)
    if isinstance(test, ast.NamedExpr):
        return split_of(module, test.value, project, depth + 1)
    found = _flag(module, test, project, depth) or _bare(module, test, project, depth)
    return found or _kept(module, test, project, depth)


def _kept(
    module: SourceModule, value: ast.AST, project: Project | None, depth: int, *, not_none: bool = False
) -> Split | None:
    """What it says that a value is there which the other ranks do not have; asked of plain tests only (`_PLAIN`).

    not_none: the test is `is not None`.
    """
    if depth >= _PLAIN:
        return None

    def plainly(where: SourceModule, test: ast.expr) -> Split | None:
        return split_of(where, test, project, _PLAIN)

    def here(test: ast.expr) -> Split | None:
        return plainly(module, test)

    found = split_of_run(module, value, project, plainly) or split_of_partial(module, value, project, plainly)
    found = found or split_of_experiment(module, value)
    return found or split_of_emptied(module, value, project, here, none_alone=not_none)


def asks_the_rank(module: SourceModule, test: ast.AST, project: Project | None) -> bool:
    """False where a test speaks of ranks by a value alone that the others do not have: what else is put under it may want another
    test, for rank 0 need not have the value either.
    """
    return split_of(module, test, project, _PLAIN) is not None


def _bare(module: SourceModule, test: ast.AST, project: Project | None, depth: int) -> Split | None:
    """`if rank:`. The text that the environment holds is true for rank 0 too: that asks whether it is set."""
    if isinstance(test, ast.Call) and end_of(test.func) not in _READS:
        return None
    source = rank_source(module, test, project, depth + 1)
    if source is None or is_text(module, test, project):
        return None
    return Split(negated(source), source)


def _compared(module: SourceModule, test: ast.Compare, project: Project | None, depth: int) -> Split | None:
    if len(test.ops) > 1:  # `-1 <= rank <= 0`: every pair must hold
        ends = [test.left, *test.comparators]
        pairs = list(zip(ends, test.ops, ends[1:], strict=False))
        splits = [comparison(module, a, op, b, project, depth + 1) for a, op, b in pairs]
        others = [p for p, s in zip(pairs, splits, strict=True) if s is None and not _asks_for_group(module, p[0], p[2])]
        told = [s for s in splits if s is not None]
        return _all_of(told, len(told) + len(others))
    right = test.comparators[0]
    if isinstance(right, ast.Constant) and isinstance(right.value, bool):  # `(rank == 0) is True`
        found = split_of(module, test.left, project, depth + 1)
        turned = right.value is isinstance(test.ops[0], (ast.NotEq, ast.IsNot))
        return found.turned if found and turned else found
    if _is_zero_or_one(right) and isinstance(test.ops[0], _NONE_OPS) and not rank_source(module, test.left, project, depth + 1):
        if (flag := split_of(module, test.left, project, depth + 1)) is not None:  # `first == 0`, of `first = rank == 0`
            turned = bool(ast.literal_eval(right)) is isinstance(test.ops[0], (ast.NotEq, ast.IsNot))
            return flag.turned if turned else flag
    if isinstance(right, ast.Constant) and right.value is None and isinstance(test.ops[0], _NONE_OPS):
        found = split_of_value(module, test.left, project) or _kept(module, test.left, project, depth, not_none=True)
        if found is not None:
            return found if isinstance(test.ops[0], (ast.IsNot, ast.NotEq)) else found.turned
    return comparison(module, test.left, test.ops[0], right, project, depth + 1)


def _is_zero_or_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value in (0, 1)


def _asks_for_group(module: SourceModule, left: ast.expr, right: ast.expr) -> bool:
    """`-1 <= rank` holds on every rank of a run with several."""
    literal = any(isinstance(end, (ast.Constant, ast.UnaryOp)) for end in (left, right))
    return literal and any(rank_source(module, end) is not None for end in (left, right))


def _all_of(splits: list[Split], parts: int) -> Split | None:
    """What tests say together of which all must hold, `parts` of them, the splits being those that speak of ranks."""
    if not splits:
        return None
    true = Ranks.ALL
    for split in splits:
        true = both(true, split.true)
    alone = len(splits) == parts and all(s.alone for s in splits)
    if len(splits) < parts:
        return Split(true, Ranks.UNKNOWN, False)
    same = {s.false for s in splits}
    return Split(true, same.pop() if len(same) == 1 else negated(true) if alone else Ranks.UNKNOWN, alone)


def _joined(module: SourceModule, test: ast.BoolOp, project: Project | None, depth: int) -> Split | None:
    """Of an `or`, everything is seen turned round: `not (a or b)` is `not a and not b`."""
    is_and = isinstance(test.op, ast.And)
    parts = [(value, split_of(module, value, project, depth + 1)) for value in test.values]
    splits = [s if is_and else s.turned for _, s in parts if s is not None]
    if not splits:
        return None
    asked = [value for value, s in parts if s is not None]
    others = [value for value, s in parts if s is None and not _asks_for_holder(value, asked)]
    others = [value for value in others if not means_process_group(module, value, project)]
    found = _all_of(splits, len(splits) + len(others))
    return found if found is None or is_and else found.turned


def _asks_for_holder(test: ast.expr, asked: list[ast.expr]) -> bool:
    """`accelerator is None` beside `accelerator.is_main_process`: a run of several processes has the object on every rank."""
    inner = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    if isinstance(inner, ast.Compare) and isinstance(inner.comparators[0], ast.Constant) and inner.comparators[0].value is None:
        inner = inner.left if isinstance(inner.ops[0], _NONE_OPS) else inner
    name = dotted(inner)
    return bool(name) and any(dotted(n.value) == name for a in asked for n in walk(a) if isinstance(n, ast.Attribute))


def means_process_group(module: SourceModule, node: ast.AST, project: Project | None = None) -> bool:
    """True for an operand that only tells a run with several processes from one without.

    `not is_initialized() or rank == 0`, `is_distributed and rank == 0`: on several processes ranks alone decide.
    """
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return means_process_group(module, node.operand, project)
    if isinstance(node, ast.Compare):
        if end_of(node.comparators[0]) == "environ":  # "RANK" in os.environ
            return isinstance(node.left, ast.Constant) and isinstance(node.ops[0], (ast.In, ast.NotIn))
        if ast.unparse(node.comparators[0]) in ("None", "-1") and rank_source(module, node.left, project) is not None:
            return True
    if isinstance(node, ast.BoolOp):
        return all(means_process_group(module, v, project) for v in node.values)
    if isinstance(node, ast.Call) and end_of(node.func) in ("get", "getenv"):  # os.environ.get("LOCAL_RANK"), a text
        return rank_source(module, node) is not None
    return asks_for_group(node)


def asks_for_group(node: ast.AST) -> bool:
    """True for a test that holds with several processes: `dist.is_initialized()`, `args.distributed`, `world_size > 1`."""
    if isinstance(node, ast.Compare):
        text = ast.unparse(node)
        return "world_size" in text or "num_processes" in text or several_by_mode(node) is True
    if isinstance(node, ast.BoolOp):
        return all(asks_for_group(v) for v in node.values)
    name = end_of(node.func if isinstance(node, ast.Call) else node).lower()
    words = ("is_initialized", "is_available", "distributed", "ddp", "multi_gpu", "is_dist", "use_dist", "is_parallel")
    return name == "distribution" or any(word in name for word in words)


def _conditional(module: SourceModule, test: ast.IfExp, project: Project | None, depth: int) -> Split | None:
    """`rank == 0 if is_initialized() else True`."""
    arms = [a for a in (test.body, test.orelse) if not isinstance(a, ast.Constant)]
    if not arms:  # `True if rank == 0 else False`
        answers = [a.value for a in (test.body, test.orelse) if isinstance(a, ast.Constant)]
        found = split_of(module, test.test, project, depth + 1) if len({bool(a) for a in answers}) > 1 else None
        return found if found is None or answers[0] else found.turned
    splits = [split_of(module, a, project, depth + 1) for a in arms]
    if None in splits:
        return None
    return splits[0] if len(set(splits)) == 1 else Split(Ranks.UNKNOWN, Ranks.UNKNOWN, False)


def _flag(module: SourceModule, node: ast.AST, project: Project | None, depth: int) -> Split | None:
    if isinstance(node, ast.Call):
        return _called_flag(module, node, project, depth)
    if isinstance(node, ast.Subscript):
        return _item(node, project, depth)
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    if isinstance(node, ast.Name):
        bound = bindings_of(module, node)
        if not bound and (imported := imported_value(module, node, project)) is not None:
            return split_of(imported[0], imported[1], project, depth + 1)
    else:
        bound = attribute_bindings(module, node)
        if not bound and (found := _member(module, node, project, depth)) is not None:
            return found
        if not bound and (inherited := inherited_bindings(project, module, node)) is not None:
            return _bound_split(*inherited, project, depth)
    if (found := _bound_split(module, bound, project, depth) or _handed_out(module, node, bound, project, depth)) is not None:
        return found
    if any(b.value is None and not b.parameter for b in bound):
        return None
    if isinstance(node, ast.Attribute) and node.attr in ARGUMENT_FLAGS and project is not None:
        if is_training_arguments(project, module, node.value):
            return _of_arguments(node.attr)
    return _flag_by_name(module, node)


def _item(node: ast.Subscript, project: Project | None, depth: int) -> Split | None:
    """`params["verbose"]`, which the project gives a test of the rank wherever it gives it anything but a constant."""
    given = [(m, v) for m, v in item_values(project, node) if not isinstance(v, ast.Constant)]
    found = {split_of(m, v, project, depth + 1) for m, v in given}
    return found.pop() if len(found) == 1 else None


def _member(module: SourceModule, node: ast.Attribute, project: Project | None, depth: int) -> Split | None:
    """A field that is given a test somewhere (`args.first = args.rank == 0`), or a property that returns one."""
    fields = [(m, b.value) for m, b in field_bindings(project, module, node) if not isinstance(b.value, ast.Constant)]
    if given := [(m, v) for m, v in keyword_values(project, module, node) if not isinstance(v, (ast.Constant, ast.Attribute))]:
        found = {split_of(m, v, project, depth + 1) for m, v in given}
        return found.pop() if len(found) == 1 else None
    if fields:
        found = {split_of(m, v, project, depth + 1) for m, v in fields if v is not None and end_of(v) != node.attr}
        return found.pop() if len(found) == 1 else None
    sites = properties(project, module, node)
    splits = {_returned_split(site, [], project, depth) for site in sites}
    if not sites:
        given = [(m, v) for m, v in record_values(project, node) if not isinstance(v, ast.Constant) and end_of(v) != node.attr]
        splits = {split_of(m, v, project, depth + 1) for m, v in given}
    return splits.pop() if len(splits) == 1 else None


def _flag_by_name(module: SourceModule, node: ast.Name | ast.Attribute) -> Split | None:
    name = end_of(node).lstrip("_")
    if name in ZERO_FLAGS or (name in WEAK_FLAGS and shows_processes(module) and not low_rank_place(module, node)):
        return Split(Ranks.ZERO, Ranks.OTHERS)
    if name in LOCAL_FLAGS:
        return Split(Ranks.LOCAL_ZERO, Ranks.LOCAL_OTHERS)
    if name in OTHER_FLAGS:
        return Split(Ranks.UNKNOWN, Ranks.UNKNOWN)
    if name in ARGUMENT_FLAGS and isinstance(node, ast.Attribute):
        holder = end_of(node.value)
        if holder in ("args", "training_args", "train_args") and module.holds(b"transformers"):
            return _of_arguments(name)
    return None


def _of_arguments(flag: str) -> Split:
    """`should_log` is true once on each node, unless `log_on_each_node=False` is given; `should_save` once."""
    return Split(Ranks.LOCAL_ZERO, Ranks.LOCAL_OTHERS) if flag == "should_log" else Split(Ranks.ZERO, Ranks.OTHERS)


def _bound_split(module: SourceModule, bound: list[Binding], project: Project | None, depth: int) -> Split | None:
    """What every binding says that is not the constant of a run with one process."""
    if not bound or len(bound) > 4 or any(b.value is None or b.part for b in bound):
        return None
    tests = [b.value for b in bound if not isinstance(b.value, ast.Constant)]
    if not tests:
        return _branched(module, bound, project, depth)
    found = [split_of(module, t, project, depth + 1) for t in tests if t is not None]
    if not found or None in found or len(set(found)) != 1:
        return None
    if any(isinstance(b.value, ast.Constant) and b.value.value is not True for b in bound):
        return Split(found[0].true, Ranks.UNKNOWN, False) if found[0] else None
    return found[0]


def _handed_out(
    module: SourceModule, node: ast.expr, bound: list[Binding], project: Project | None, depth: int
) -> Split | None:
    """`first, device = set_up(args)`: what the function of the project gives in that place, but for True (one process)."""
    if depth > _PLAIN or len(bound) != 1 or not bound[0].part or not isinstance(call := bound[0].value, ast.Call):
        return None
    targets = bound[0].node.targets[0] if isinstance(bound[0].node, ast.Assign) else None
    place = place_of(targets, dotted(node))
    site = called_function(project, module, call) if place is not None else None
    if place is None or site is None or not may_speak_of_ranks(project, module, call):
        return None
    given = [part_of(r.value, place) for r in walk_scope(site.node) if isinstance(r, ast.Return)]
    tests = [g for g in given if not (isinstance(g, ast.Constant) and g.value is True)]
    found = {split_of(site.module, t, project, depth + 2) if t is not None else None for t in tests}
    return found.pop() if len(found) == 1 else None


def _branched(module: SourceModule, bound: list[Binding], project: Project | None, depth: int) -> Split | None:
    """What a flag says that is a constant in each branch of a test."""
    way = tests_of_flag(module, bound)
    if way is None:
        return None
    path, value = way
    tests = [(test, taken) for test, taken in path if several_processes(module, test) is not taken]  # those hold in any case
    known = [(s if taken else s.turned) for test, taken in tests if (s := split_of(module, test, project, depth + 1)) is not None]
    found = _all_of(known, len(tests))
    return found if found is None or value else found.turned


def _called_flag(module: SourceModule, call: ast.Call, project: Project | None, depth: int) -> Split | None:
    name = end_of(call.func).lstrip("_")
    if name == "bool" and len(call.args) == 1:
        return split_of(module, call.args[0], project, depth + 1)
    if name == "getattr" and len(call.args) > 1 and isinstance(call.args[1], ast.Constant):
        known = str(call.args[1].value) in ZERO_FLAGS
        return Split(Ranks.ZERO, Ranks.OTHERS) if known else None
    if (found := split_of_value(module, call, project)) is not None:
        return found
    helper = _helper(module, call, project, depth)
    if helper is not None:
        return helper
    if not isinstance(call.func, (ast.Name, ast.Attribute)):
        return None
    named = _flag_by_name(module, call.func) if name not in ARGUMENT_FLAGS else None
    if named is None or not (call.args or call.keywords):
        return named
    if name == "is_master_ordinal":
        off = any(isinstance(a, ast.Constant) and a.value is False for a in [*call.args, *(k.value for k in call.keywords)])
        return Split(Ranks.ZERO, Ranks.OTHERS) if off else named
    if len(call.args) == 1 and not call.keywords:  # is_master(args)
        return named if name in ZERO_FLAGS or shows_processes(module) else None
    return Split(Ranks.UNKNOWN, Ranks.UNKNOWN, False)


def _helper(module: SourceModule, call: ast.Call, project: Project | None, depth: int) -> Split | None:
    """A project function or method that returns a rank test."""
    if depth > 5 or not may_speak_of_ranks(project, module, call):
        return None
    found = {_returned_split(site, [call], project, depth) for site in called_sites(project, module, call)}
    return found.pop() if len(found) == 1 else None


def _returned_split(site: FunctionSite, calls: list[ast.Call], project: Project | None, depth: int) -> Split | None:
    """The test that all returns of a short function are, but for True (one process)."""
    if depth > 5 or len(site.node.body) > 8:
        return None
    returns = [r.value for r in walk_scope(site.node) if isinstance(r, ast.Return)]
    values = [_arm(v, site.node, calls[0]) if calls else v for v in returns]
    tests = [v for v in values if v is not None and not isinstance(v, ast.Constant)]
    if not tests:
        return _by_returns(site, project, depth)
    if len(tests) > 3 or any(isinstance(v, ast.Constant) and v.value is not True for v in values):
        return None
    if any(rank_source(site.module, t, project, depth + 1) for t in tests):
        return None  # it returns the rank itself
    found = [split_of(site.module, t, project, depth + 2) for t in tests]
    return found[0] if None not in found and len(set(found)) == 1 else None


def _by_returns(site: FunctionSite, project: Project | None, depth: int) -> Split | None:
    """`if rank == 0: return True`, then `return False`: the answer is the test."""
    body = [s for s in site.node.body if not isinstance(s, (ast.Expr, ast.Import, ast.ImportFrom))]
    if not body or not isinstance(first := body[0], ast.If) or len(first.body) != 1:
        return None
    rest = first.orelse or body[1:]
    if len(rest) != 1:
        return None
    one, other = first.body[0], rest[0]
    answers = [s.value.value for s in (one, other) if isinstance(s, ast.Return) and isinstance(s.value, ast.Constant)]
    if len(answers) != 2 or bool(answers[0]) is bool(answers[1]):
        return None
    found = split_of(site.module, first.test, project, depth + 2)
    return found if found is None or answers[0] else found.turned


def _arm(value: ast.expr | None, function: FunctionNode, call: ast.Call) -> ast.expr | None:
    """Of `local_test() if local else global_test()` the arm that a call takes, by its argument or the default."""
    if not isinstance(value, ast.IfExp) or not isinstance(value.test, ast.Name):
        return value
    spec = function.args
    names = [a.arg for a in [*spec.posonlyargs, *spec.args]]
    default = dict(zip(reversed(names), reversed(spec.defaults), strict=False)).get(value.test.id)
    given = next((k.value for k in call.keywords if k.arg == value.test.id), default)
    if not isinstance(given, ast.Constant) or any(k.arg is None for k in call.keywords):
        return value
    starred = any(isinstance(a, ast.Starred) for a in call.args)
    if starred or value.test.id not in names or names.index(value.test.id) < len(call.args):
        return value
    return value.body if given.value else value.orelse
