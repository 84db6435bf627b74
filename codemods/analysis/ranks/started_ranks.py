"""Does a process that this file starts become a rank? By the function that it runs, or the environment that it is given."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.call_graph import FunctionSite, called_function, find_function
from codemods.analysis.guards.entry_points import starts_group
from codemods.analysis.names import dotted, end_of, last, qualified
from codemods.analysis.ranks.handed_arguments import argument
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

DEPTH = 5
_VARIABLES = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE"})
_OPTIONS = lazy(r"^--(?:local[_-]rank|rank|node[_-]rank)\b")


def started_rank(project: Project, module: SourceModule, call: ast.Call) -> str:
    """Why the process that `call` starts is a rank, "" where that is not shown."""
    name = qualified(module, call.func)
    if last(name) == "Process" or end_of(call.func) == "Process":
        return _by_target(project, module, call)
    if name in ("subprocess.Popen", "Popen"):
        return _by_environment(project, module, call)
    return ""


# multiprocessing.Process


def _by_target(project: Project, module: SourceModule, call: ast.Call) -> str:
    target = next((k.value for k in call.keywords if k.arg == "target"), None)
    if target is None and len(call.args) > 1:
        target = call.args[1]
    for site in _targets(project, module, target) if target is not None else ():
        if reaches_group(project, site):
            return f"{site.node.name}() joins the process group"
    return ""


def _targets(project: Project, module: SourceModule, target: ast.expr) -> list[FunctionSite]:
    """The functions that a target may be; of a parameter those that the callers hand over."""
    if isinstance(target, ast.Call) and last(dotted(target.func)) == "partial" and target.args:
        target = target.args[0]
    name = dotted(target)
    if not name:
        return []
    root, _, rest = name.partition(".")
    if root == "self" and rest:
        owner = module.class_of(target)
        own = module.methods_of(owner).get(rest) if owner is not None else None
        return [FunctionSite(module, own)] if own is not None else []
    bound = bindings_of(module, target) if isinstance(target, ast.Name) else []
    if any(b.parameter for b in bound):
        return _handed_over(project, module, target)
    near = [f for f in module.functions if f.name == name and module.class_of(f) is None]
    if near:
        return [FunctionSite(module, near[-1])]
    site = find_function(project, module, name)
    return [site] if site is not None else []


def _handed_over(project: Project, module: SourceModule, target: ast.expr) -> list[FunctionSite]:
    function = module.function_of(target)
    if function is None or not isinstance(target, ast.Name):
        return []
    names = [a.arg for a in function.args.args]
    names = names[1:] if names[:1] == ["self"] else names
    found: list[FunctionSite] = []
    for place in uses_of(project, module, function).calls[:6]:
        given = argument(place.call, names, target.id)
        site = find_function(project, place.module, dotted(given)) if given is not None and dotted(given) else None
        found += [site] if site is not None else []
    return found


def reaches_group(project: Project, site: FunctionSite, above: tuple[tuple[str, int, int], ...] = ()) -> bool:
    """True for a function that starts the process group, itself or through what it calls."""
    if site.key in above or len(above) >= DEPTH:
        return False
    calls = [n for n in walk(site.node) if isinstance(n, ast.Call)]
    if any(starts_group(site.module, c) for c in calls):
        return True
    inner = (called_function(project, site.module, c) for c in calls)
    return any(reaches_group(project, i, (*above, site.key)) for i in inner if i is not None)


# subprocess.Popen


def _by_environment(project: Project, module: SourceModule, call: ast.Call) -> str:
    """The variable of a launcher that the process is given, or the option that tells it its number."""
    env = next((k.value for k in call.keywords if k.arg == "env"), None)
    if env is not None and (found := _sets_variable(module, env)):
        return f"it is given {found}"
    if not project.files_containing(b"init_process_group"):
        return ""  # parts of a preparation are numbered, too, and wait for nobody
    command = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "args"), None)
    values = [command] if command is not None else []
    for name in _lists(command):
        values += [b.value for b in bindings_of(module, name) if b.value is not None]
        added = (c for c in module.calls_named("append", "extend", "insert") if dotted(c.func).startswith(f"{name.id}."))
        values += [a for c in added for a in c.args]
    for value in values:
        for node in walk(value):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _OPTIONS.search(node.value):
                return f"it is given {node.value.partition('=')[0]}"
    return ""


def _lists(command: ast.expr | None) -> list[ast.Name]:
    """The lists that a command is put together from: `words`, `[sys.executable] + words`, `[sys.executable, *words]`."""
    if isinstance(command, ast.Name):
        return [command]
    if isinstance(command, ast.BinOp) and isinstance(command.op, ast.Add):
        return [*_lists(command.left), *_lists(command.right)]
    if isinstance(command, (ast.List, ast.Tuple)):
        return [e.value for e in command.elts if isinstance(e, ast.Starred) and isinstance(e.value, ast.Name)]
    return []


def _sets_variable(module: SourceModule, env: ast.expr) -> str:
    values: list[ast.AST] = [env]
    if isinstance(env, ast.Name):
        values += [b.value for b in bindings_of(module, env) if b.value is not None]
        values += [c for c in module.calls_named("update") if dotted(c.func) == f"{env.id}.update"]
        for piece in module.nodes(ast.Subscript):
            if isinstance(piece.ctx, ast.Store) and dotted(piece.value) == env.id and isinstance(piece.slice, ast.Constant):
                values.append(piece.slice)
    for value in values:
        for node in walk(value):
            if isinstance(node, ast.Constant) and node.value in _VARIABLES:
                return str(node.value)
            if isinstance(node, ast.keyword) and node.arg in _VARIABLES:
                return str(node.arg)
    return ""
