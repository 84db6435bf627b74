"""Where a function or a class that is named as a value is called: out of a table, under another name, by who is handed it.

`TASKS = {"fit": fit}` with `TASKS[name](cfg)`, `run = trainer.fit` with `run()`, `launch(fit, args)`,
`mp.spawn(worker, args=(fit,))`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.bindings import bindings_of
from codemods.analysis.call_graph import FunctionSite, called_function, find_function
from codemods.analysis.distribution import is_test_file
from codemods.analysis.handed import held_as
from codemods.analysis.importing import importers
from codemods.analysis.names import dotted, last
from codemods.analysis.reaching import reaching
from codemods.files.source import SourceModule, walk
from codemods.runtime.record import record, replace
from codemods.store.project import Project

_DEPTH = 4
_MOST_FILES = 12
_STARTS = frozenset({"spawn", "start_processes", "Process"})
_LOOKS = frozenset(
    {"len", "list", "sorted", "set", "tuple", "print", "str", "repr", "join", "callable", "isinstance", "id", "type"}
)
_TOLD = frozenset({"__name__", "__qualname__", "__module__", "__doc__", "keys"})


@record
class ValueCall:
    """A call of the value. shifted: a `partial` gives some of its arguments. handed: the places, outermost first, that hand it to
    the function round the call. spawned: that function runs in processes that the handing one starts.
    """

    module: SourceModule
    call: ast.Call
    shifted: bool = False
    handed: tuple[tuple[SourceModule, ast.AST], ...] = ()
    spawned: bool = False


class _Open(Exception):
    """It goes somewhere that is not seen."""


def calls_of_value(project: Project, module: SourceModule, node: ast.expr) -> tuple[ValueCall, ...]:
    """Every call of the value that `node` names without calling it; none where it may go elsewhere, or nobody calls it."""
    key = ("calls of a value", module.path, node.lineno, node.col_offset, dotted(node))
    return project.memo(key, lambda: _all(project, module, node))


def _all(project: Project, module: SourceModule, node: ast.expr) -> tuple[ValueCall, ...]:
    try:
        return tuple(_calls(project, module, node, 0))
    except _Open:
        return ()


def plain_calls(project: Project, module: SourceModule, node: ast.expr) -> tuple[tuple[SourceModule, ast.Call], ...]:
    """The calls of a value that get the arguments as they are, and hang on no function that is handed the value."""
    found = calls_of_value(project, module, node)
    return () if any(c.shifted or c.handed for c in found) else tuple((c.module, c.call) for c in found)


def _calls(project: Project, module: SourceModule, node: ast.expr, depth: int) -> Iterator[ValueCall]:
    """Where the value of the expression `node` is called; raises _Open."""
    up = module.parent(node)
    if depth > _DEPTH or up is None:
        raise _Open
    if isinstance(up, (ast.IfExp, ast.BoolOp)):
        if getattr(up, "test", None) is not node:
            yield from _calls(project, module, up, depth)
        return
    if isinstance(up, ast.Compare) or (isinstance(up, ast.Attribute) and up.attr in _TOLD):
        return
    if isinstance(up, ast.Call) and up.func is node:
        yield ValueCall(module, up)
        return
    if isinstance(up, (ast.Dict, ast.List, ast.Tuple)) and not _is_of_a_launcher(module, up):
        yield from _of_table(project, module, up, depth)
        return
    if isinstance(up, ast.Assign) and up.value is node and len(up.targets) == 1 and isinstance(up.targets[0], ast.Name):
        yield from _of_name(project, module, up.targets[0], depth)
        return
    yield from _of_argument(project, module, node, depth)


def _of_name(project: Project, module: SourceModule, name: ast.Name, depth: int) -> Iterator[ValueCall]:
    """`run = trainer.fit`, in a function: every read of the name there that may have this value."""
    function = module.function_of(name)
    if function is None or any(name.id in g.names for g in walk(function) if isinstance(g, (ast.Global, ast.Nonlocal))):
        raise _Open
    given = module.parent(name)
    for read in module.reads_of(name.id):
        if isinstance(read, ast.Name) and any(up is function for up in module.ancestors(read)):
            if any(b.node is given for b in reaching(module, read, bindings_of(module, read))):
                yield from _calls(project, module, read, depth + 1)


def _of_table(project: Project, module: SourceModule, table: ast.expr, depth: int) -> Iterator[ValueCall]:
    """`TASKS = {"fit": fit}`: every read of the table, here and in the files that import it."""
    if isinstance(table, ast.Dict) and any(k is None for k in table.keys):
        raise _Open
    up = module.parent(table)
    if isinstance(up, (ast.Subscript, ast.For, ast.comprehension)):
        yield from _of_entry(project, module, table, depth)
        return
    target = up.targets[0] if isinstance(up, ast.Assign) and len(up.targets) == 1 else getattr(up, "target", None)
    if not isinstance(up, (ast.Assign, ast.AnnAssign)) or not isinstance(target, ast.Name):
        raise _Open
    function = module.function_of(up)
    if function is None and module.class_of(up) is not None:
        raise _Open  # a field of the class: whoever has an object reads it
    for home, read in _reads_of_table(project, module, target.id, top=function is None):
        if function is None or any(a is function for a in home.ancestors(read)):
            yield from _of_entry(project, home, read, depth)


def _reads_of_table(
    project: Project, module: SourceModule, name: str, *, top: bool
) -> Iterator[tuple[SourceModule, ast.expr]]:
    yield from ((module, read) for read in module.reads_of(name) if isinstance(read, ast.Name))
    users = project.files_using(name, most=_MOST_FILES, among=importers(project, module.path)) if top else ()
    if users is None:
        raise _Open
    for path in users:
        other = project.module(path) if path != module.path and not is_test_file(path) else None
        for read in other.reads_of(name) if other is not None else ():
            assert other is not None
            named = dotted(read)
            root = named.partition(".")[0]
            found = (project.resolve(f"{i.dotted}{named[len(root):]}", path) for i in other.imports.get(root, ()))
            if any(f is not None and f.path == module.path and f.rest == (name,) for f in found):
                yield other, read
            elif root in other.imports and not isinstance(read, ast.Name):
                raise _Open  # a package may hand it on


def _of_entry(project: Project, module: SourceModule, read: ast.expr, depth: int) -> Iterator[ValueCall]:
    """What is done with the table: an entry is taken out of it, or it is only looked at."""
    up = module.parent(read)
    if isinstance(up, ast.Subscript) and up.value is read:
        if isinstance(up.ctx, ast.Load):
            yield from _calls(project, module, up, depth + 1)
        return
    if isinstance(up, ast.Attribute):
        call = module.parent(up)
        if up.attr in ("get", "pop") and isinstance(call, ast.Call) and call.func is up:
            yield from _calls(project, module, call, depth + 1)
            return
        if up.attr in ("keys", "update", "setdefault", "append"):
            return
        raise _Open
    if isinstance(up, (ast.For, ast.comprehension)) and up.iter is read and isinstance(up.target, ast.Name):
        within = up if isinstance(up, ast.For) else module.parent(up)
        for item in module.reads_of(up.target.id):
            if isinstance(item, ast.Name) and any(above is within for above in module.ancestors(item)):
                yield from _calls(project, module, item, depth + 1)
        return
    looked = isinstance(up, ast.Call) and last(dotted(up.func)) in _LOOKS
    if not (looked or isinstance(up, (ast.Compare, ast.FormattedValue)) or (isinstance(up, ast.keyword) and up.arg == "choices")):
        raise _Open


def _of_argument(project: Project, module: SourceModule, node: ast.expr, depth: int) -> Iterator[ValueCall]:
    """An argument of a call: of `partial`, of a function of the project, or of what starts the processes."""
    up = module.parent(node)
    if isinstance(up, (ast.Tuple, ast.List)):
        yield from _of_worker(project, module, node, up, depth)
        return
    call = module.parent(up) if isinstance(up, ast.keyword) else up
    if not isinstance(call, ast.Call):
        raise _Open
    if dotted(call.func) in _LOOKS:
        return
    if last(dotted(call.func)) == "partial" and call.args[:1] == [node]:
        yield from (replace(c, shifted=True) for c in _calls(project, module, call, depth + 1))
        return
    site = called_function(project, module, call)
    name = held_as(site, call, node) if site is not None and site.node.name != "__init__" else ""
    if site is None or not name:
        raise _Open
    yield from _of_parameter(project, site, name, (module, call), depth)


def _of_parameter(
    project: Project, site: FunctionSite, name: str, place: tuple[SourceModule, ast.AST], depth: int, *, spawned: bool = False
) -> Iterator[ValueCall]:
    for read in site.module.reads_of(name):
        if not isinstance(read, ast.Name) or all(up is not site.node for up in site.module.ancestors(read)):
            continue
        if not all(b.parameter for b in bindings_of(site.module, read)):
            raise _Open
        for found in _calls(project, site.module, read, depth + 1):
            yield replace(found, handed=(place, *found.handed), spawned=spawned or found.spawned)


def _of_worker(
    project: Project, module: SourceModule, node: ast.expr, given: ast.Tuple | ast.List, depth: int
) -> Iterator[ValueCall]:
    """`mp.spawn(worker, args=(fit, cfg))`: what the worker does with the parameter of that place."""
    call = _launcher_round(module, given)
    if call is None or any(isinstance(e, ast.Starred) for e in given.elts):
        raise _Open
    started = _started_by(call)
    site = find_function(project, module, dotted(started)) if started is not None and dotted(started) else None
    if site is None:
        raise _Open
    number = 0 if last(dotted(call.func)) == "Process" else 1
    names = [a.arg for a in (*site.node.args.posonlyargs, *site.node.args.args)]
    at = number + next(i for i, e in enumerate(given.elts) if e is node)
    if at >= len(names):
        raise _Open
    yield from _of_parameter(project, site, names[at], (module, call), depth, spawned=True)


def _is_of_a_launcher(module: SourceModule, given: ast.expr) -> bool:
    return _launcher_round(module, given) is not None


def _launcher_round(module: SourceModule, given: ast.expr) -> ast.Call | None:
    """The `mp.spawn(…)` or `Process(…)` of which this is `args`."""
    up = module.parent(given)
    call = module.parent(up) if isinstance(up, ast.keyword) and up.arg == "args" else up
    if not isinstance(call, ast.Call) or last(dotted(call.func)) not in _STARTS:
        return None
    second: Sequence[ast.expr] = call.args[1:2]
    return call if isinstance(up, ast.keyword) or given in second else None


def _started_by(call: ast.Call) -> ast.expr | None:
    names = ("fn", "target")
    return call.args[0] if call.args else next((k.value for k in call.keywords if k.arg in names), None)
