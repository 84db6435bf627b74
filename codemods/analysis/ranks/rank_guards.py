"""Which ranks reach this statement: by tests round it, early exits above it, and decorators of its function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from codemods.analysis.call_graph import find_function
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.rank_sources import Ranks
from codemods.analysis.ranks.rank_tests import Split, both, negated, ranks_of_test, split_of
from codemods.project import Project
from codemods.source import FunctionNode, SourceModule, child_nodes, walk

__all__ = [
    "ORDERED_CONTEXTS", "Guard", "Ranks", "both", "decorated_ranks", "early_exit", "guards_over", "negated", "ranks_at",
    "ranks_of_test", "speaks_of_ranks", "split_of",
]  # fmt: skip

_ZERO_DECORATORS = frozenset(
    {"rank_zero_only", "on_main_process", "master_only", "main_process_only", "rank0_only", "only_on_rank_zero", "on_rank_zero",
     "rank_zero", "only_main_process", "is_master_only", "main_process", "master_process", "run_on_main", "only_on_master",
     "rank_zero_fn", "on_rank0"}
)  # fmt: skip
_PLAIN_DECORATORS = frozenset({"property", "staticmethod", "classmethod"})
_LOCAL_DECORATORS = frozenset({"on_local_main_process", "local_rank_zero_only"})
# Entered by every rank, one after the other.
ORDERED_CONTEXTS = frozenset(
    {"rank_zero_first", "main_process_first", "local_main_process_first", "torch_distributed_zero_first", "zero_first"}
)
_EXITS = (ast.Return, ast.Continue, ast.Break, ast.Raise)


@dataclass(frozen=True, slots=True)
class Guard:
    """Something that keeps ranks from a statement. ranks: those that pass.

    node: the `if`, conditional expression or boolean operation, the early exit above, or the decorated function.
    kind: "if", "else", "exit" or "decorator". alone: nothing but the rank decides.
    """

    ranks: Ranks
    node: ast.AST
    kind: str
    alone: bool = True

    @property
    def line(self) -> int:
        return self.node.lineno  # type: ignore[attr-defined,no-any-return]


def ranks_at(module: SourceModule, node: ast.AST, *, project: Project | None = None) -> Ranks:
    """The ranks that reach `node` within its function: tests round it, early exits above it, decorators."""
    ranks = Ranks.ALL
    for guard in guards_over(module, node, project=project):
        ranks = both(ranks, guard.ranks)
    return ranks


def guards_over(
    module: SourceModule, node: ast.AST, *, project: Project | None = None, decorators: bool = True
) -> Iterator[Guard]:
    """Every guard between `node` and the outside of its function, innermost first; its decorators last."""
    function = module.function_of(node)
    tested = id(function) in _tested_scopes(module, project)
    if not tested and not (decorators and function is not None and function.decorator_list):
        return
    exits = _exits(module, project) if tested else {}
    below: ast.AST = node
    for up in module.ancestors(node):
        if tested:
            yield from _branch(module, up, below, project)
        if exits:
            yield from _exits_above(exits, up, below)
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if not decorators or any(d is below for d in up.decorator_list):
                return
            ranks = decorated_ranks(module, up, project=project)
            if ranks.some:
                yield Guard(ranks, up, "decorator")
            return
        below = up


def speaks_of_ranks(module: SourceModule, function: FunctionNode | None, project: Project | None = None) -> bool:
    """False where no statement of the function (None: of the module itself) can stand under a rank guard."""
    if id(function) in _tested_scopes(module, project):
        return True
    return function is not None and decorated_ranks(module, function, project=project).some


def _tested_scopes(module: SourceModule, project: Project | None) -> frozenset[int]:
    """The functions (by id; that of None is the module itself) that hold a test of ranks: few, in most files."""
    if project is None:
        return _scopes_alone(module)
    return project.memo(("tested scopes", module.path), lambda: _find_scopes(module, project))


@lru_cache(maxsize=64)
def _scopes_alone(module: SourceModule) -> frozenset[int]:
    return _find_scopes(module, None)


def _find_scopes(module: SourceModule, project: Project | None) -> frozenset[int]:
    tested: list[ast.If | ast.While | ast.IfExp] = [
        *module.nodes(ast.If), *module.nodes(ast.While), *module.nodes(ast.IfExp)
    ]  # fmt: skip
    tests: list[ast.expr] = [t.test for t in tested]
    tests += [value for operation in module.nodes(ast.BoolOp) for value in operation.values[:-1]]
    return frozenset(id(module.function_of(t)) for t in tests if _split(module, t, project) is not None)


def _branch(module: SourceModule, up: ast.AST, below: ast.AST, project: Project | None) -> Iterator[Guard]:
    """What the step from `up` down to its child `below` says of the ranks."""
    if isinstance(up, (ast.If, ast.While, ast.IfExp)) and below is not up.test:
        if (split := _split(module, up.test, project)) is not None:
            body = up.body if isinstance(up.body, list) else [up.body]
            inside = any(s is below for s in body)
            yield Guard(split.true if inside else split.false, up, "if" if inside else "else", split.alone)
    elif isinstance(up, ast.BoolOp):
        for value in up.values:
            if value is below:
                break
            if (split := _split(module, value, project)) is not None:
                yield Guard(split.true if isinstance(up.op, ast.And) else split.false, up, "if", split.alone)


def _split(module: SourceModule, test: ast.expr, project: Project | None) -> Split | None:
    """What a test says of ranks, remembered: many statements stand under the same one."""
    if project is None:
        return split_of(module, test)
    known = project.memo(("rank tests", module.path), dict[int, Split | None])
    if id(test) not in known:
        known[id(test)] = split_of(module, test, project)
    return known[id(test)]


def _exits_above(exits: dict[int, Guard], up: ast.AST, below: ast.AST) -> Iterator[Guard]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(up, name, None)
        if isinstance(block, list) and any(s is below for s in block):
            for statement in block:
                if statement is below:
                    return
                if (guard := exits.get(id(statement))) is not None:
                    yield guard


# Early exits


def _exits(module: SourceModule, project: Project | None) -> dict[int, Guard]:
    """The statements behind which only some ranks go on, by id."""
    if project is None:
        return _exits_alone(module)
    return project.memo(("rank exits", module.path), lambda: _find_exits(module, project))


@lru_cache(maxsize=64)
def _exits_alone(module: SourceModule) -> dict[int, Guard]:
    return _find_exits(module, None)


def _find_exits(module: SourceModule, project: Project | None) -> dict[int, Guard]:
    found: dict[int, Guard] = {}
    for statement in module.nodes(ast.If):
        if _split(module, statement.test, project) is None or not _leaves_somewhere(statement):
            continue
        if (guard := _passing(module, statement, project)) is None:
            continue
        _add(found, statement, guard)
        returns = _leaves_somewhere(statement, returns_only=True)
        for up in module.ancestors(statement):
            if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)):
                break
            if isinstance(up, (ast.For, ast.AsyncFor, ast.While)) and not returns:
                break
            sure = isinstance(up, (ast.With, ast.AsyncWith))
            _add(found, up, guard if sure else Guard(Ranks.UNKNOWN, statement, "exit", False))
            if not sure:
                guard = Guard(Ranks.UNKNOWN, statement, "exit", False)
    return found


def _add(found: dict[int, Guard], node: ast.AST, guard: Guard) -> None:
    before = found.get(id(node))
    found[id(node)] = guard if before is None else Guard(both(before.ranks, guard.ranks), before.node, "exit", False)


def _passing(module: SourceModule, statement: ast.If, project: Project | None) -> Guard | None:
    """Who goes on behind an `if` by rank that leaves the block; None where that has nothing to do with ranks."""
    split = _split(module, statement.test, project)
    if split is None:
        return None
    out, other = _leaves(statement.body), bool(statement.orelse) and _leaves(statement.orelse)
    if out and other:
        return None
    if out and not _leaves_in(statement.orelse):
        return Guard(split.false, statement, "exit", split.alone)
    if other and not _leaves_in(statement.body):
        return Guard(split.true, statement, "exit", split.alone)
    if _leaves_in(statement.body, quiet=True) or _leaves_in(statement.orelse, quiet=True):
        return Guard(Ranks.UNKNOWN, statement, "exit", False)
    return None


def _leaves(block: list[ast.stmt]) -> bool:
    return bool(block) and isinstance(block[-1], _EXITS)


def _leaves_somewhere(statement: ast.If, *, returns_only: bool = False) -> bool:
    return _leaves_in([statement], returns_only=returns_only)


def _leaves_in(block: list[ast.stmt], *, returns_only: bool = False, quiet: bool = False) -> bool:
    """True if a statement in the block leaves it: return, and continue or break of a loop outside.

    quiet: an exception does not count; one rank that fails is another matter.
    """
    stack: list[tuple[ast.AST, bool]] = [(s, False) for s in block]
    while stack:
        node, in_loop = stack.pop()
        if isinstance(node, ast.Return) or (isinstance(node, ast.Raise) and not quiet and not returns_only):
            return True
        if isinstance(node, (ast.Continue, ast.Break)) and not in_loop and not returns_only:
            return True
        if not isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case) or isinstance(
            node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        ):
            continue
        loop = in_loop or isinstance(node, (ast.For, ast.AsyncFor, ast.While))
        stack += [(child, loop) for child in child_nodes(node)]
    return False


def early_exit(module: SourceModule, statement: ast.stmt, *, project: Project | None = None) -> Ranks | None:
    """The ranks that leave the block at `if <rank test>: return` (or continue, break, raise); None for other statements."""
    if not isinstance(statement, ast.If) or statement.orelse or not _leaves(statement.body):
        return None
    split = split_of(module, statement.test, project)
    if split is None:
        return None
    return negated(split.false) if split.false is not Ranks.UNKNOWN else split.true


# Decorators


def decorated_ranks(module: SourceModule, function: FunctionNode, *, project: Project | None = None) -> Ranks:
    """The ranks for which a function's body runs, by its decorators; a project's own wrapper is looked into."""
    if not function.decorator_list:
        return Ranks.ALL
    if project is None:
        return _decorated(module, function, None)
    known = project.memo(("decorated ranks", module.path), dict[int, Ranks])
    if id(function) not in known:
        known[id(function)] = _decorated(module, function, project)
    return known[id(function)]


def _decorated(module: SourceModule, function: FunctionNode, project: Project | None) -> Ranks:
    ranks = Ranks.ALL
    for decorator in function.decorator_list:
        node = decorator.func if isinstance(decorator, ast.Call) else decorator
        own = _wrapper_ranks(module, node, project)
        name = last(qualified(module, node)).lstrip("_")
        if own is not None:
            ranks = both(ranks, own)
        elif name in _ZERO_DECORATORS:
            ranks = both(ranks, Ranks.ZERO)
        elif name in _LOCAL_DECORATORS:
            ranks = both(ranks, Ranks.LOCAL_ZERO)
    return ranks


def _wrapper_ranks(module: SourceModule, decorator: ast.expr, project: Project | None) -> Ranks | None:
    """The ranks on which a project's decorator calls what it decorates; None where it is not seen to call it."""
    name = dotted(decorator)
    if not name or name in _PLAIN_DECORATORS or name.startswith("self."):
        return None
    if project is None:
        return _called_by_wrapper(module, name, None)
    return project.memo(("wrapper ranks", module.path, name), lambda: _called_by_wrapper(module, name, project))


def _called_by_wrapper(module: SourceModule, name: str, project: Project | None) -> Ranks | None:
    site = find_function(project, module, name)
    if site is None:
        return None
    answers = set()
    for call in (n for n in _all_calls(site.node) if isinstance(n.func, ast.Name)):
        if _is_parameter_round(site.module, call, site.node):
            ranks = Ranks.ALL
            for guard in guards_over(site.module, call, project=project, decorators=False):
                ranks = both(ranks, guard.ranks)
            answers.add(ranks)
    if not answers:
        return None
    return answers.pop() if len(answers) == 1 else Ranks.UNKNOWN


def _all_calls(function: FunctionNode) -> Iterator[ast.Call]:
    return (n for n in walk(function) if isinstance(n, ast.Call))


def _is_parameter_round(module: SourceModule, call: ast.Call, outer: FunctionNode) -> bool:
    """True if the called name is the first argument of a function round the call: the function that is decorated."""
    assert isinstance(call.func, ast.Name)
    scope = module.function_of(call)
    while scope is not None and scope is not outer:
        holder = module.function_of(scope)
        if holder is not None and holder.args.args and holder.args.args[0].arg == call.func.id:
            return True
        scope = holder
    return False
