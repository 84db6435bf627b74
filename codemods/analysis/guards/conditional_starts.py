"""Functions that start the process group, or come back without one: `init_distributed_mode(args)` and what stands below it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.distribution import is_test_file
from codemods.analysis.guards.called_with_group import SPEAKING, words_of
from codemods.analysis.guards.entry_points import starts_group
from codemods.analysis.guards.needed_below import asks_the_group_for_ranks, makes_a_sampler
from codemods.analysis.names import dotted, imported_as, last, qualified
from codemods.analysis.ranks.uses import calls_of, uses_of
from codemods.files.left_alone import left
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_ASKED = frozenset({"is_initialized", "is_available", "is_torchelastic_launched"})
_ENDS = frozenset({"exit", "sys.exit", "os._exit", "quit"})
_WRAPS = frozenset({"DistributedDataParallel", "FullyShardedDataParallel"})
# What a device and its backend are called: a program that knows two of them has no further one to go on with.
_KINDS = frozenset({"cuda", "gpu", "npu", "xpu", "hpu", "mlu", "cpu", "tpu", "nccl", "hccl", "ccl", "gloo", "mpi", "xccl"})
_MOST_CALLERS = 6
_OF_LAUNCHERS = ("LOCAL_RANK", "RANK")  # torchrun sets WORLD_SIZE for one process, and programs ask it for that


@record
class BareReturn:
    """path, name, line: a function that starts the group. ends, at: the file and line where it comes back without one."""

    path: str
    name: str
    line: int
    ends: str
    at: int


def conditional_starters(project: Project) -> dict[str, tuple[BareReturn, ...]]:
    """By name, the functions of the project that start the group on some of their ways only."""

    def build() -> dict[str, tuple[BareReturn, ...]]:
        found: dict[str, list[BareReturn]] = {}
        for path in project.files_containing(b"init_process_group"):
            module = None if is_test_file(path) else project.module(path)
            for call in module.calls_named("init_process_group") if module is not None else ():
                function = module.function_of(call) if module is not None and starts_group(module, call) else None
                if module is not None and function is not None and (at := _bare_end(module, function)):
                    one = BareReturn(path, function.name, function.lineno, path, at)
                    if one not in found.setdefault(function.name, []):
                        found[function.name].append(one)
        for first in [b for all_ in found.values() for b in all_]:
            for one in _handing_on(project, first):
                if one not in found.setdefault(one.name, []):
                    found[one.name].append(one)
        return {name: tuple(all_) for name, all_ in found.items()}

    return project.keep("conditional starters", build)


def _handing_on(project: Project, first: BareReturn) -> Iterator[BareReturn]:
    """The functions that call it in any case: `setup(args)`."""
    renamed = project.files_containing(f"{first.name} as ".encode())
    for path in sorted({*project.files_calling(first.name), *renamed}):
        module = None if is_test_file(path) else project.module(path)
        for call in module.calls_named(first.name) if module is not None else ():
            assert module is not None
            function = module.function_of(call)
            if function is None or not any(s is module.statement_of(call) for s in function.body):
                continue
            site = called_function(project, module, call)
            if site is not None and (site.module.path, site.node.lineno) == (first.path, first.line):
                yield BareReturn(path, function.name, function.lineno, first.ends, first.at)


# The ways through a starter


class _Ways:
    """line: where some way ends without a group, 0 where none does."""

    def __init__(self, module: SourceModule) -> None:
        self.module, self.line = module, 0

    def block(self, body: Sequence[ast.stmt], started: frozenset[bool]) -> frozenset[bool]:
        """What holds behind the block, for the ways that come there: is there a group?"""
        for statement in body:
            if not started:
                return started
            started = self.statement(statement, started)
        return started

    def statement(self, node: ast.stmt, started: frozenset[bool]) -> frozenset[bool]:
        if isinstance(node, ast.If):
            if words_of(node.test) & _ASKED:  # the question whether there is one already, or can be one
                return frozenset({True}) if self._starts(node) else started
            if all(self._starts(arm) for arm in _arms_by_kind(node)) and len(_arms_by_kind(node)) > 1:
                return frozenset({True})
            return self.block(node.body, started) | self.block(node.orelse, started)
        if isinstance(node, ast.Return):
            if False in started and not self._starts(node):
                self.line = self.line or node.lineno
            return frozenset()
        if isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and _ends(node.value)):
            return frozenset()
        if isinstance(node, (ast.With, ast.AsyncWith)):
            return self.block(node.body, started)
        if isinstance(node, (ast.Try, ast.TryStar)):
            return self.block([*node.body, *node.finalbody], started)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return started
        return frozenset({True}) if self._starts(node) else started

    def _starts(self, node: ast.AST) -> bool:
        """True for a start, and for anything that may be one by its name: the helpers of other launchers."""
        calls = [n for n in walk(node) if isinstance(n, ast.Call)]
        return any(starts_group(self.module, c) or "init" in last(dotted(c.func)).lower() for c in calls)


def _ends(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and dotted(value.func) in _ENDS


def _arms_by_kind(node: ast.If) -> list[ast.Module]:
    """The arms of `if device == "cuda": … elif device == "npu": …`; none where an arm asks for something else."""
    arms: list[ast.Module] = []
    while True:
        asked = [n.value for n in walk(node.test) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        if not asked or not all(word.lower() in _KINDS for word in asked):
            return []
        arms.append(ast.Module(node.body, []))
        if len(node.orelse) != 1 or not isinstance(node.orelse[0], ast.If):
            return arms if not node.orelse else [*arms, ast.Module(node.orelse, [])]
        node = node.orelse[0]


def _bare_end(module: SourceModule, function: FunctionNode) -> int:
    """The line where the function ends without a group on a way that no question for a group decides; 0 for none."""
    ways = _Ways(module)
    if False in ways.block(function.body, frozenset({False})):
        return ways.line or function.body[-1].lineno
    return ways.line


# Who stands below such a call


@record
class BelowStart:
    """start: the call that may come back without a group, in `module`. found: what it says of the starter."""

    module: SourceModule
    start: ast.Call
    found: BareReturn


def start_above(project: Project, module: SourceModule, call: ast.Call) -> BelowStart | None:
    """The starter above a collective, in its own function, or in one that calls this function without a test for a group."""
    if not conditional_starters(project):
        return None
    function = module.function_of(call)
    if (own := _in_scope(project, module, function, call)) is not None or function is None:
        return own
    if module.class_of(call) is not None or uses_of(project, module, function).handed_on:
        return None
    if needs_a_group(project, module, function, call) and left(module, call, "the function needs a group above, in any case"):
        return None
    from codemods.analysis.guards.group_may_be_missing import is_guarded  # it asks for this

    for site in (calls_of(project, module, function) or ())[:_MOST_CALLERS]:
        if is_test_file(site.module.path) or is_guarded(project, site.module, site.call, set()):
            continue
        if (found := _in_scope(project, site.module, site.module.function_of(site.call), site.call)) is not None:
            return found
    return None


def _in_scope(
    project: Project, module: SourceModule, function: FunctionNode | None, call: ast.Call
) -> BelowStart | None:
    starters = conditional_starters(project)
    scope: ast.AST = function or module.tree
    above = [n for n in walk_scope(scope) if isinstance(n, ast.Call) and n.lineno < call.lineno]
    starts = [c for c in above if last(dotted(c.func)) in starters or imported_as(module, c.func) in starters]
    if not starts or not _stands_in(module, starts[0], call) or needs_a_group(project, module, scope, call):
        return None
    site = called_function(project, module, starts[0])
    found = _named(starters, site) if site is not None else None
    others = (c for c in above if c is not starts[0] and starts_group(module, c))
    return BelowStart(module, starts[0], found) if found is not None and not any(True for _ in others) else None


def _named(starters: dict[str, tuple[BareReturn, ...]], site: FunctionSite) -> BareReturn | None:
    same = starters.get(site.node.name, ())
    return next((b for b in same if b.path == site.module.path and b.line == site.node.lineno), None)


def _stands_in(module: SourceModule, start: ast.Call, call: ast.Call) -> bool:
    """True where the way to the collective goes past the start, under no test of its own."""
    statement = module.statement_of(start)
    if not isinstance(statement, (ast.Expr, ast.Assign)):
        return False
    owner = module.parent(statement)
    return isinstance(owner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)) or (
        any(up is owner for up in module.ancestors(call)) and isinstance(owner, (ast.If, ast.With))
    )


def needs_a_group(project: Project, module: SourceModule, scope: ast.AST, call: ast.expr) -> bool:
    """True where the program ends without a group: it asserts above that there is one, or it wraps its model in any case.

    What is wrapped below it counts where every way comes to it.
    """
    from codemods.analysis.guards.group_may_be_missing import is_guarded  # it asks for this

    for node in walk_scope(scope):
        if getattr(node, "lineno", call.lineno) >= call.lineno:
            wraps = isinstance(node, ast.Call) and _is_wrapped_below(module, scope, node)
            if wraps and isinstance(node, ast.Call) and not is_guarded(project, module, node, set()):
                return True
            continue
        if isinstance(node, ast.Subscript) and _asks_launcher(module, node) and not is_guarded(project, module, node, set()):
            return True
        if isinstance(node, ast.Assert) and any(s in w.lower() for w in words_of(node.test) for s in SPEAKING):
            return True
        if isinstance(node, ast.Call) and _asks_group(module, node) and not is_guarded(project, module, node, set()):
            return True
        if isinstance(node, ast.Call) and _is_run_by_all(module, scope, node) and makes_a_sampler(project, module, node):
            return True
    return False


def _is_run_by_all(module: SourceModule, scope: ast.AST, call: ast.Call) -> bool:
    """True for a call that is a statement of the function's own block, or the value that one binds."""
    statement = module.statement_of(call)
    plain = isinstance(statement, (ast.Expr, ast.Assign, ast.AnnAssign)) and statement.value is call
    return plain and module.parent(statement) is scope


def _is_wrapped_below(module: SourceModule, scope: ast.AST, call: ast.Call) -> bool:
    body = scope.body if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)) else []
    return last(qualified(module, call.func)) in _WRAPS and any(s is module.statement_of(call) for s in body)


def _asks_launcher(module: SourceModule, node: ast.Subscript) -> bool:
    """True for `os.environ["LOCAL_RANK"]`: a KeyError in a run that no launcher has started."""
    named = isinstance(node.slice, ast.Constant) and node.slice.value in _OF_LAUNCHERS
    return named and isinstance(node.ctx, ast.Load) and qualified(module, node.value) == "os.environ"


def _asks_group(module: SourceModule, call: ast.Call) -> bool:
    """True for what raises without a group: a wrapper, a sampler that asks for the ranks, `dist.get_rank()` of torch itself."""
    name = qualified(module, call.func)
    if last(name) in _WRAPS:
        return True
    return asks_the_group_for_ranks(module, call) or name in ("torch.distributed.get_rank", "torch.distributed.get_world_size")


