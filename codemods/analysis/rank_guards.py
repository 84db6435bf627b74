"""Which ranks reach this statement: by tests round it, early exits above it, and decorators of its function."""

from __future__ import annotations

import ast
from enum import Enum

from codemods.analysis.names import dotted, last, qualified
from codemods.source import FunctionNode, SourceModule


class Ranks(Enum):
    """A set of processes, as far as the source shows it."""

    ALL = "every rank"
    ZERO = "global rank 0"
    LOCAL_ZERO = "local rank 0 of each node"
    OTHERS = "ranks other than 0"
    UNKNOWN = "ranks that the source does not show"

    @property
    def some(self) -> bool:
        """True unless every rank comes here."""
        return self is not Ranks.ALL


_ZERO_FLAGS = frozenset(
    {"is_global_zero", "is_main_process", "is_world_process_zero", "is_master", "is_rank_zero", "is_rank_0", "is_rank0",
     "is_main", "is_root", "master_process", "main_process", "if_main_process", "is_primary", "is_chief", "is_master_process",
     "is_global_master", "is_zero_rank", "rank_zero", "is_main_rank", "is_logging_process", "should_save", "should_log"}
)  # fmt: skip
_LOCAL_FLAGS = frozenset({"is_local_main_process", "is_local_process_zero", "is_local_master", "is_local_zero", "is_local_rank_zero"})
_RANK_NAMES = frozenset({"rank", "global_rank", "get_rank", "process_index", "node_rank_global", "RANK", "world_rank", "SLURM_PROCID"})
_LOCAL_NAMES = frozenset({"local_rank", "LOCAL_RANK", "get_local_rank", "local_process_index"})
_ZERO_DECORATORS = frozenset(
    {"rank_zero_only", "on_main_process", "master_only", "main_process_only", "rank0_only", "only_on_rank_zero",
     "main_process", "master_process", "on_rank_zero", "rank_zero", "once_only", "only_main_process", "is_master_only"}
)  # fmt: skip
_LOCAL_DECORATORS = frozenset({"on_local_main_process", "local_rank_zero_only"})
# Entered by every rank, one after the other.
ORDERED_CONTEXTS = frozenset({"rank_zero_first", "main_process_first", "local_main_process_first", "torch_distributed_zero_first"})


def _rank_source(node: ast.AST) -> Ranks | None:
    """ZERO for an expression that is the global rank, LOCAL_ZERO for the local one, None for anything else."""
    if isinstance(node, ast.Call):
        name = last(dotted(node.func))
        if name == "int" and node.args:
            return _rank_source(node.args[0])
        if name in ("get", "getenv") and node.args and isinstance(node.args[0], ast.Constant):
            name = str(node.args[0].value)
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        name = str(node.slice.value)
    else:
        name = last(dotted(node))
    name = name.lstrip("_")
    if name in _LOCAL_NAMES:
        return Ranks.LOCAL_ZERO
    return Ranks.ZERO if name in _RANK_NAMES else None


def _flag(module: SourceModule, node: ast.AST) -> Ranks | None:
    if isinstance(node, ast.Call) and not node.args and not node.keywords:
        node = node.func
    name = last(dotted(node)).lstrip("_")
    if name in _ZERO_FLAGS:
        return Ranks.ZERO
    if name in _LOCAL_FLAGS:
        return Ranks.LOCAL_ZERO
    if isinstance(node, ast.Name) and (value := _bound_test(module, node)) is not None:
        return ranks_of_test(module, value)
    return None


def _bound_test(module: SourceModule, name: ast.Name) -> ast.expr | None:
    """The one value that a name is bound to in its function or at module level, where it is a comparison or a call."""
    scope = module.function_of(name)
    for home in (scope, None):
        values = [
            a.value for a in module.nodes(ast.Assign)
            if module.function_of(a) is home and len(a.targets) == 1
            and isinstance(a.targets[0], ast.Name) and a.targets[0].id == name.id
        ]  # fmt: skip
        if values:
            return values[0] if len(values) == 1 and not isinstance(values[0], ast.Name) else None
    return None


def negated(ranks: Ranks) -> Ranks:
    if ranks is Ranks.ZERO:
        return Ranks.OTHERS
    if ranks is Ranks.OTHERS:
        return Ranks.ZERO
    return Ranks.UNKNOWN


def ranks_of_test(module: SourceModule, test: ast.AST) -> Ranks | None:
    """The ranks for which a test can be true; None where it has nothing to do with ranks.

    `rank in (-1, 0)` counts as rank 0: -1 is how a run without a process group is written.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        if (source := _rank_source(test.operand)) is not None:
            return source
        inner = ranks_of_test(module, test.operand)
        return negated(inner) if inner else None
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _comparison(test)
    if isinstance(test, ast.BoolOp):
        parts = [r for v in test.values if (r := ranks_of_test(module, v)) is not None]
        if not parts:
            return None
        if isinstance(test.op, ast.And):
            return parts[0]
        if len(parts) == len(test.values) and len(set(parts)) == 1:
            return parts[0]
        # `rank is None or rank == 0`, `not is_initialized() or rank == 0`: true off a process group, else rank 0
        rest = [v for v in test.values if ranks_of_test(module, v) is None]
        return parts[0] if all(_means_single(module, v) for v in rest) else Ranks.UNKNOWN
    return _flag(module, test)


def _means_single(module: SourceModule, node: ast.AST) -> bool:
    text = module.text_of(node)
    return any(word in text for word in ("is_initialized", "is_available", "is None", "distributed", "world_size", "ddp"))


def _comparison(test: ast.Compare) -> Ranks | None:
    left, right, op = test.left, test.comparators[0], test.ops[0]
    source = _rank_source(left)
    if source is None:
        source, right = _rank_source(right), left
    if source is None:
        return None
    if isinstance(op, (ast.In, ast.NotIn)):
        values = {ast.unparse(e) for e in getattr(right, "elts", [])}
        if not values or not values <= {"-1", "0", "None"}:
            return Ranks.UNKNOWN
        if values == {"-1"}:
            return None  # "is this run distributed?": the same answer on every rank
        return source if isinstance(op, ast.In) else negated(source)
    value = ast.unparse(right)
    if value == "-1" or value == "None":
        return None
    if value != "0":
        return Ranks.UNKNOWN
    if isinstance(op, (ast.Eq, ast.Is, ast.LtE)):
        return source
    if isinstance(op, (ast.NotEq, ast.IsNot, ast.Gt)):
        return negated(source)
    return None if isinstance(op, (ast.GtE, ast.Lt)) else Ranks.UNKNOWN


def decorated_ranks(module: SourceModule, function: FunctionNode) -> Ranks:
    """The ranks for which a function's body runs, by its decorators."""
    for decorator in function.decorator_list:
        node = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = last(qualified(module, node)).lstrip("_")
        if name in _ZERO_DECORATORS:
            return Ranks.ZERO
        if name in _LOCAL_DECORATORS:
            return Ranks.LOCAL_ZERO
    return Ranks.ALL


def ranks_at(module: SourceModule, node: ast.AST) -> Ranks:
    """The ranks that reach `node` within its function: tests round it, early exits above it, decorators."""
    below: ast.AST = node
    for up in module.ancestors(node):
        found = _narrowed(module, up, below)
        if found is not None:
            return found
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return decorated_ranks(module, up)
        below = up
    return Ranks.ALL


def _narrowed(module: SourceModule, up: ast.AST, below: ast.AST) -> Ranks | None:
    """What the step from `up` down to its child `below` says of the ranks."""
    if isinstance(up, (ast.If, ast.While)) and below is not up.test:
        ranks = ranks_of_test(module, up.test)
        if ranks is not None:
            return ranks if any(s is below for s in up.body) else negated(ranks)
    if isinstance(up, ast.IfExp) and below is not up.test:
        ranks = ranks_of_test(module, up.test)
        if ranks is not None:
            return ranks if below is up.body else negated(ranks)
    if isinstance(up, ast.BoolOp):
        for value in up.values:
            if value is below:
                break
            ranks = ranks_of_test(module, value)
            if ranks is not None:
                return ranks if isinstance(up.op, ast.And) else negated(ranks)
    for block in ("body", "orelse", "finalbody"):
        statements = getattr(up, block, None)
        if isinstance(statements, list) and any(s is below for s in statements):
            for statement in statements:
                if statement is below:
                    break
                if (exit_ranks := early_exit(module, statement)) is not None:
                    return negated(exit_ranks)
    return None


def early_exit(module: SourceModule, statement: ast.stmt) -> Ranks | None:
    """The ranks that leave the block at `if <rank test>: return` (or continue, break, raise); None for other statements."""
    if not isinstance(statement, ast.If) or not statement.body or statement.orelse:
        return None
    if not isinstance(statement.body[-1], (ast.Return, ast.Continue, ast.Break, ast.Raise)):
        return None
    if isinstance(statement.test, ast.BoolOp) and isinstance(statement.test.op, ast.Or):
        for value in statement.test.values:
            if (ranks := ranks_of_test(module, value)) is not None:
                return ranks
        return None
    return ranks_of_test(module, statement.test)
