"""What a test says of ranks: the processes for which it can be true, and those for which it can be false."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from codemods.analysis.bindings import Binding, attribute_bindings, bindings_of
from codemods.analysis.call_graph import called_function, may_speak_of_ranks
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.rank_sources import DEPTH, Ranks, imported_value, low_rank_place, rank_source, shows_processes
from codemods.project import Project
from codemods.source import FunctionNode, SourceModule, walk_scope

ZERO_FLAGS = frozenset(
    {"is_global_zero", "is_main_process", "is_world_process_zero", "is_rank_zero", "is_rank_0", "is_rank0", "master_process",
     "main_process", "if_main_process", "is_master_process", "is_global_master", "is_zero_rank", "is_main_rank",
     "is_logging_process", "is_global_main_process", "is_world_master", "is_global_rank_zero", "is_first_rank",
     "is_distributed_master"}
)  # fmt: skip
# Words of other trades too (trees, databases, boards): they count only where processes are shown.
_WEAK_FLAGS = frozenset({"is_master", "is_main", "is_root", "is_primary", "is_chief", "rank_zero", "master"})
LOCAL_FLAGS = frozenset(
    {"is_local_main_process", "is_local_process_zero", "is_local_master", "is_local_zero", "is_local_rank_zero",
     "is_local_rank_0", "is_local_rank0"}
)  # fmt: skip
# Properties of transformers.TrainingArguments; TrainerControl.should_save is another thing.
_ARGUMENT_FLAGS = frozenset({"should_save", "should_log"})


@dataclass(frozen=True, slots=True)
class Split:
    """The ranks for which a test can be true, those for which it can be false, and whether ranks alone decide it."""

    true: Ranks
    false: Ranks
    alone: bool = True

    @property
    def turned(self) -> Split:
        return Split(self.false, self.true, self.alone)


_OPPOSITE = {
    Ranks.ZERO: Ranks.OTHERS, Ranks.OTHERS: Ranks.ZERO,
    Ranks.LOCAL_ZERO: Ranks.LOCAL_OTHERS, Ranks.LOCAL_OTHERS: Ranks.LOCAL_ZERO,
}  # fmt: skip


def negated(ranks: Ranks) -> Ranks:
    """The other processes."""
    return _OPPOSITE.get(ranks, Ranks.UNKNOWN)


def both(one: Ranks, other: Ranks) -> Ranks:
    """The processes that two conditions let through together."""
    if one is Ranks.ALL or one is other:
        return other
    if other is Ranks.ALL:
        return one
    pair = {one, other}
    if Ranks.ZERO in pair and not pair & {Ranks.OTHERS, Ranks.LOCAL_OTHERS}:
        return Ranks.ZERO
    if pair == {Ranks.OTHERS, Ranks.LOCAL_OTHERS}:
        return Ranks.LOCAL_OTHERS
    return Ranks.UNKNOWN


def split_of(module: SourceModule, test: ast.AST, project: Project | None = None, depth: int = 0) -> Split | None:
    """What a test says of ranks; None where it has nothing to do with them.

    `rank in (-1, 0)` counts as rank 0: -1 is how a run without a process group is written. So does `rank is None or …`.
    """
    if depth > DEPTH:
        return None
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        if (source := rank_source(module, test.operand, project, depth + 1)) is not None:
            return Split(source, negated(source))
        inner = split_of(module, test.operand, project, depth + 1)
        return inner.turned if inner else None
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _comparison(module, test, project, depth)
    if isinstance(test, ast.BoolOp):
        return _joined(module, test, project, depth)
    if isinstance(test, ast.IfExp):
        return _conditional(module, test, project, depth)
    return _flag(module, test, project, depth)


def _joined(module: SourceModule, test: ast.BoolOp, project: Project | None, depth: int) -> Split | None:
    is_and = isinstance(test.op, ast.And)
    parts = [(value, split_of(module, value, project, depth + 1)) for value in test.values]
    splits = [s if is_and else s.turned for _, s in parts if s is not None]
    if not splits:
        return None
    others = [value for value, s in parts if s is None and not means_process_group(module, value)]
    true = Ranks.ALL
    for split in splits:  # of an `or`, everything is seen turned round: `not (a or b)` is `not a and not b`
        true = both(true, split.true)
    false = Ranks.UNKNOWN if others or len({s.false for s in splits}) > 1 else splits[0].false
    alone = not others and all(s.alone for s in splits)
    return Split(true, false, alone) if is_and else Split(false, true, alone)


def means_process_group(module: SourceModule, node: ast.AST) -> bool:
    """True for an operand that only tells a run with several processes from one without.

    `not is_initialized() or rank == 0`, `is_distributed and rank == 0`: on several processes ranks alone decide.
    """
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return means_process_group(module, node.operand)
    if isinstance(node, ast.Compare):
        source = rank_source(module, node.left)
        value = ast.unparse(node.comparators[0])
        if source is not None and value in ("None", "-1"):
            return True
    if isinstance(node, ast.BoolOp):
        return all(means_process_group(module, v) for v in node.values)
    return asks_for_group(node)


def asks_for_group(node: ast.AST) -> bool:
    """True for a test that holds with several processes: `dist.is_initialized()`, `args.distributed`, `world_size > 1`."""
    if isinstance(node, ast.Compare):
        text = ast.unparse(node)
        return "world_size" in text or "num_processes" in text
    if isinstance(node, ast.BoolOp):
        return all(asks_for_group(v) for v in node.values)
    name = last(dotted(node.func if isinstance(node, ast.Call) else node)).lower()
    words = ("is_initialized", "is_available", "distributed", "ddp", "multi_gpu", "is_dist", "use_dist", "is_parallel")
    return any(word in name for word in words)


def _conditional(module: SourceModule, test: ast.IfExp, project: Project | None, depth: int) -> Split | None:
    """`rank == 0 if is_initialized() else True`."""
    arms = [a for a in (test.body, test.orelse) if not isinstance(a, ast.Constant)]
    found = [split_of(module, a, project, depth + 1) for a in arms]
    if not found or None in found:
        return None
    return found[0] if len(set(found)) == 1 else Split(Ranks.UNKNOWN, Ranks.UNKNOWN, False)


_ZERO_VALUES = frozenset({"-1", "0", "None", "'0'", "'-1'"})


def _comparison(module: SourceModule, test: ast.Compare, project: Project | None, depth: int) -> Split | None:
    left, right, op = test.left, test.comparators[0], test.ops[0]
    source = rank_source(module, left, project, depth + 1) or _by_idiom(left, right)
    turned = source is None
    if source is None:
        source, right = rank_source(module, right, project, depth + 1), left
    if source is None or (turned and isinstance(op, (ast.In, ast.NotIn))):
        return None
    here, unknown = Split(source, negated(source)), Split(Ranks.UNKNOWN, Ranks.UNKNOWN)
    if isinstance(op, (ast.In, ast.NotIn)):
        values = {ast.unparse(e) for e in getattr(right, "elts", [])}
        if values and values <= {"-1", "None", "'-1'"}:
            return None
        if not values or not values <= _ZERO_VALUES:
            return unknown
        return here if isinstance(op, ast.In) else here.turned
    value = ast.unparse(right).strip("'\"")
    if value in ("-1", "None", ""):
        return None  # "is this run distributed?": the same answer on every rank
    if source is Ranks.UNKNOWN:
        return unknown
    below = (ast.Gt, ast.GtE) if turned else (ast.Lt, ast.LtE)
    above = (ast.Lt, ast.LtE) if turned else (ast.Gt, ast.GtE)
    if value == "0":
        if isinstance(op, (ast.Eq, ast.Is, below[1])):
            return here
        if isinstance(op, (ast.NotEq, ast.IsNot, above[0])):
            return here.turned
        return None  # `rank >= 0`, `rank < 0`: is this run distributed?
    if value == "1" and isinstance(op, below[0]):
        return here
    if value == "1" and isinstance(op, above[1]):
        return here.turned
    return unknown


def _by_idiom(left: ast.expr, right: ast.expr) -> Ranks | None:
    """`rank in (-1, 0)` is said of processes only, whatever else the file shows."""
    values = {ast.unparse(e) for e in getattr(right, "elts", [])}
    return Ranks.ZERO if last(dotted(left)).lstrip("_") == "rank" and values == {"-1", "0"} else None


def _flag(module: SourceModule, node: ast.AST, project: Project | None, depth: int) -> Split | None:
    if isinstance(node, ast.Call):
        return _called_flag(module, node, project, depth)
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    if isinstance(node, ast.Name):
        bound = bindings_of(module, node)
        if not bound and (imported := imported_value(module, node, project)) is not None:
            return split_of(imported[0], imported[1], project, depth + 1)
    else:
        bound = attribute_bindings(module, node)
    if (found := _bound_split(module, bound, project, depth)) is not None:
        return found
    if any(b.value is None and not b.parameter for b in bound):
        return None
    return _flag_by_name(module, node)


def _flag_by_name(module: SourceModule, node: ast.Name | ast.Attribute) -> Split | None:
    name = last(dotted(node)).lstrip("_")
    if name in ZERO_FLAGS or (name in _WEAK_FLAGS and shows_processes(module) and not low_rank_place(module, node)):
        return Split(Ranks.ZERO, Ranks.OTHERS)
    if name in LOCAL_FLAGS:
        return Split(Ranks.LOCAL_ZERO, Ranks.LOCAL_OTHERS)
    if name in _ARGUMENT_FLAGS and isinstance(node, ast.Attribute):
        holder = last(dotted(node.value))
        if holder in ("args", "training_args", "train_args") and b"transformers" in module.data:
            return Split(Ranks.ZERO, Ranks.OTHERS)
    return None


def _bound_split(module: SourceModule, bound: list[Binding], project: Project | None, depth: int) -> Split | None:
    """What every binding says that is not the constant of a run with one process."""
    if not bound or len(bound) > 4 or any(b.value is None or b.part for b in bound):
        return None
    tests = [b.value for b in bound if not isinstance(b.value, ast.Constant)]
    found = [split_of(module, t, project, depth + 1) for t in tests if t is not None]
    if not found or None in found or len(set(found)) != 1:
        return None
    if any(isinstance(b.value, ast.Constant) and b.value.value is not True for b in bound):
        return Split(found[0].true, Ranks.UNKNOWN, False) if found[0] else None
    return found[0]


def _called_flag(module: SourceModule, call: ast.Call, project: Project | None, depth: int) -> Split | None:
    name = last(dotted(call.func)).lstrip("_")
    if name == "bool" and len(call.args) == 1:
        return split_of(module, call.args[0], project, depth + 1)
    if name == "getattr" and len(call.args) > 1 and isinstance(call.args[1], ast.Constant):
        name = str(call.args[1].value)
        known = name in ZERO_FLAGS
        return Split(Ranks.ZERO, Ranks.OTHERS) if known else None
    helper = _helper(module, call, project, depth)
    if helper is not None:
        return helper
    if not isinstance(call.func, (ast.Name, ast.Attribute)):
        return None
    named = _flag_by_name(module, call.func) if name not in _ARGUMENT_FLAGS else None
    if named is None or not (call.args or call.keywords):
        return named
    if len(call.args) == 1 and not call.keywords:  # is_master(args)
        return named if name in ZERO_FLAGS or shows_processes(module) else None
    return Split(Ranks.UNKNOWN, Ranks.UNKNOWN, False)


def _helper(module: SourceModule, call: ast.Call, project: Project | None, depth: int) -> Split | None:
    """A project function that returns a rank test: all its returns are that test, or True (one process)."""
    if depth > 3 or not may_speak_of_ranks(project, module, call):
        return None
    site = called_function(project, module, call)
    if site is None or len(site.node.body) > 8:
        return None
    values = [_arm(r.value, site.node, call) for r in walk_scope(site.node) if isinstance(r, ast.Return)]
    tests = [v for v in values if v is not None and not isinstance(v, ast.Constant)]
    if not tests or len(tests) > 3 or any(isinstance(v, ast.Constant) and v.value is not True for v in values):
        return None
    if any(rank_source(site.module, t, project, depth + 1) for t in tests):
        return None  # it returns the rank itself
    found = [split_of(site.module, t, project, depth + 2) for t in tests]
    return found[0] if None not in found and len(set(found)) == 1 else None


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


def ranks_of_test(module: SourceModule, test: ast.AST, *, project: Project | None = None) -> Ranks | None:
    """The ranks for which a test can be true; None where it has nothing to do with ranks."""
    split = split_of(module, test, project)
    return split.true if split else None
