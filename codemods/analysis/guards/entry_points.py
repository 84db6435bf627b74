"""Which function of a script runs the program that starts the process group, and where it ends."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.conditions import is_main_block
from codemods.analysis.distribution import is_test_file
from codemods.analysis.files.file_flow import callee
from codemods.analysis.model.signatures import has_parameter, takes
from codemods.analysis.names import dotted, is_parameter, last, qualified
from codemods.analysis.other_names import leads_to, reads_by_other_names
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.rewriting.imports import in_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_SPAWNS = frozenset({"spawn", "start_processes", "Process", "launch", "elastic_launch", "notebook_launcher"})
CLIMBS = 5
_OF_THE_START = ("backend", "init_method", "timeout", "world_size", "rank", "store")
_BLOCKS = (ast.If, ast.With, ast.For, ast.While)
# What ends the process that calls it.
EXITS = frozenset({"exit", "quit", "_exit", "SystemExit"})


@record
class Entry:
    """function: what a script, or a process that it starts, runs; None where the script itself is the program.

    call: the call of it at the script's top level, None where it is handed to something that starts processes.
    """

    module: SourceModule
    function: FunctionNode | None
    call: ast.Call | None


def entries(project: Project, module: SourceModule, call: ast.Call) -> list[Entry]:
    """The entries from which `call` is reached, as far as calls by name show them."""
    found = {(_at(e), e.module.path): e for e in _of(project, module, module.function_of(call), call, 0)}
    return list(found.values())


def _at(entry: Entry) -> int:
    return entry.function.lineno if entry.function else 0


def _of(
    project: Project, module: SourceModule, function: FunctionNode | None, call: ast.Call, climbs: int
) -> Iterator[Entry]:
    if is_test_file(module.path):
        return
    if function is None:
        if module.class_of(call) is None:
            yield Entry(module, None, call)
        return
    sites = list(_sites(project, module, function))
    if any(handed_on for _, _, handed_on in sites):  # a call of it in this process ends in it as well
        yield Entry(module, function, None)
        return
    for other, site, _ in sites:
        outer = other.function_of(site)
        block = main_block(other, site) if outer is None else None
        if block is not None:
            if (other is module or len(sites) == 1) and _ends_with(other, block, site, function):
                yield Entry(module, function, site)
            else:
                yield Entry(other, None, site)
        elif outer is not None and climbs < CLIMBS and outer is not function:
            yield from _of(project, other, outer, site, climbs + 1)


def _ends_with(module: SourceModule, block: ast.If, call: ast.Call, function: FunctionNode) -> bool:
    """True where the program ends when the call comes back.

    What a constructor or a set-up gives back goes on working with the group: `Engine(config).train()`, `train(*build(args))`.
    """
    holder: ast.AST | None = module.parent(call)
    if isinstance(holder, ast.Call) and last(dotted(holder.func)) in EXITS:
        holder = module.parent(holder)
    return isinstance(holder, ast.Expr) and function.name != "__init__" and _is_last(module, block, holder)


def _is_last(module: SourceModule, block: ast.If, statement: ast.stmt) -> bool:
    """True where nothing else of the block is run behind the statement, which may stand in an arm of an `if`, or in a loop."""
    inner: ast.AST = statement
    for up in module.ancestors(statement):
        arms = [getattr(up, field, []) for field in ("body", "orelse")] if isinstance(up, _BLOCKS) else []
        tried = [up.orelse or up.body] if isinstance(up, ast.Try) else []  # what stands in `finally` puts away
        if not any(arm and arm[-1] is inner for arm in (*arms, *tried)):
            return False
        if up is block:
            return True
        inner = up
    return False


def _sites(project: Project, module: SourceModule, function: FunctionNode) -> Iterator[tuple[SourceModule, ast.Call, bool]]:
    """The calls of a function, and those that get it to run it in another process."""
    owner = module.parent(function)
    name = owner.name if function.name == "__init__" and isinstance(owner, ast.ClassDef) else function.name
    for path in project.files_containing(name.encode()):
        other = project.module(path)
        if other is None:
            continue
        for call in other.calls_named(name):
            site = callee(project, other, call)
            if site is not None and site.node is function and not fails(call, function):
                yield other, call, False
        for call in other.calls_named(*_SPAWNS):
            named = (a for a in _started(call) if last(dotted(a)) == name)
            if any((isinstance(a, ast.Name) and other is module) or leads_to(project, other, a, function) for a in named):
                yield other, call, True
    top = owner if isinstance(owner, ast.ClassDef) else function
    for read in reads_by_other_names(project, module, top) if name == top.name else ():
        started = _starting(read.module, read.node)
        if started is not None:
            yield read.module, started, True
        elif read.call is not None and not read.module.holds(name.encode()) and not fails(read.call, function):
            yield read.module, read.call, False


def _started(call: ast.Call) -> list[ast.expr]:
    """What a call may run in another process."""
    return [*call.args[:1], *(k.value for k in call.keywords if k.arg in ("fn", "target", "main_func", "function"))]


def _starting(module: SourceModule, node: ast.expr) -> ast.Call | None:
    """The call that gets `node` to be run in another process."""
    up = module.parent(node)
    call = module.parent(up) if isinstance(up, ast.keyword) else up
    if not isinstance(call, ast.Call) or last(dotted(call.func)) not in _SPAWNS:
        return None
    return call if any(a is node for a in _started(call)) else None


def fails(call: ast.Call, function: FunctionNode) -> bool:
    """True where the call does not give what the function asks for, or gives more: it ends in a TypeError at once."""
    first = [a.arg for a in (*function.args.posonlyargs, *function.args.args)][:1]
    return not function.decorator_list and not takes(function, call, bound=first in (["self"], ["cls"]))


def main_block(module: SourceModule, node: ast.AST) -> ast.If | None:
    """The `if __name__ == "__main__":` round a node."""
    return next((up for up in module.ancestors(node) if isinstance(up, ast.If) and is_main_block(up)), None)


def group_name(module: SourceModule, at: ast.AST) -> str:
    """How `torch.distributed` is written at a place, "" where no import reaches it."""
    for wanted, suffix in (("torch.distributed", ""), ("torch", ".distributed")):
        name = in_scope(module, lambda dotted_name, wanted=wanted: dotted_name == wanted)  # type: ignore[misc]
        if name and not is_parameter(module, name.partition(".")[0], at) and not _rebound(module, name.partition(".")[0], at):
            return f"{name}{suffix}"
    return ""


def _rebound(module: SourceModule, name: str, at: ast.AST) -> bool:
    """True where the function round a place gives the import's name another value."""
    scope = at if isinstance(at, (ast.FunctionDef, ast.AsyncFunctionDef)) else module.function_of(at)
    if scope is None:
        return False
    if has_parameter(scope, name):
        return True
    return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in walk_scope(scope))


def group_arguments(call: ast.Call) -> dict[str, ast.expr] | None:
    """The arguments of `init_process_group` by name; None where a star hides some of them."""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return None
    given: dict[str, ast.expr] = dict(zip(_OF_THE_START, call.args, strict=False))
    return given | {k.arg: k.value for k in call.keywords if k.arg}


def starts_group(module: SourceModule, call: ast.Call) -> bool:
    """True for torch's own `init_process_group`."""
    name = qualified(module, call.func)
    return last(name) == "init_process_group" and (name.startswith("torch.") or last(dotted(call.func)) == name)
