"""Programs that can run on one machine only: the group is started at this machine's own address, with a rank for each device."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, last, qualified
from codemods.files.source import SourceModule, walk
from codemods.files.text_file import PYTHON_KINDS
from codemods.store.project import Project

_OWN = ("127.0.0.1", "localhost")


def is_on_one_machine(project: Project) -> bool:
    """True where every start of a group in the project is one of the devices of one machine."""
    return project.keep("on one machine", lambda: _all_are(project))


def _all_are(project: Project) -> bool:
    files = (p for p in project.files_containing(b"init_process_group") if p.endswith(PYTHON_KINDS) and not is_test_file(p))
    modules = [m for m in map(project.module, sorted(files)) if m is not None]
    starts = [(m, c) for m in modules for c in m.calls_named("init_process_group")]
    return bool(starts) and all(_is_here(m, c) and _counts_devices(m, c) for m, c in starts)


def _is_here(module: SourceModule, call: ast.Call) -> bool:
    """True for `init_method="tcp://127.0.0.1:29500"`."""
    if not qualified(module, call.func).startswith("torch."):
        return False
    given = [*call.args[1:2], *(k.value for k in call.keywords if k.arg == "init_method")]
    if all(isinstance(g, ast.Constant) and g.value == "env://" for g in given):
        return _names_itself(module)
    return any(isinstance(n, ast.Constant) and any(own in str(n.value) for own in _OWN) for g in given for n in walk(g))


def _names_itself(module: SourceModule) -> bool:
    """True where the file sets `MASTER_ADDR`, always to this machine's own address."""
    stored = [
        a.value for a in module.nodes(ast.Assign) for t in a.targets
        if isinstance(t, ast.Subscript) and isinstance(t.slice, ast.Constant) and t.slice.value == "MASTER_ADDR"
    ]  # fmt: skip
    return bool(stored) and all(isinstance(v, ast.Constant) and v.value in _OWN for v in stored)


def _counts_devices(module: SourceModule, call: ast.Call) -> bool:
    """True where the number of ranks is that of the devices of this machine."""
    given = next((k.value for k in call.keywords if k.arg == "world_size"), None)
    values = [b.value for b in bindings_of(module, given)] if isinstance(given, ast.Name) else [given]
    if isinstance(given, ast.Name) and (handed := _handed_by_spawn(module, call, given)) is not None:
        values = [b.value for b in bindings_of(module, handed)] if isinstance(handed, ast.Name) else [handed]
    if isinstance(given, ast.Attribute):
        values = [a.value for a in module.nodes(ast.Assign) if any(dotted(t) == dotted(given) for t in a.targets)]
    return bool(values) and all(isinstance(v, ast.Call) and last(dotted(v.func)) == "device_count" for v in values)


def _handed_by_spawn(module: SourceModule, call: ast.Call, given: ast.Name) -> ast.expr | None:
    """What the one `mp.spawn(run, nprocs=n, args=(n,))` of the file hands to a parameter of the function that makes the call."""
    function = module.function_of(call)
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)] if function is not None else []
    if function is None or given.id not in names:
        return None
    spawns = [c for c in module.calls_named("spawn") if c.args and dotted(c.args[0]) == function.name]
    handed = next((k.value for k in spawns[0].keywords if k.arg == "args"), None) if len(spawns) == 1 else None
    place = names.index(given.id) - 1  # the first one is the number of the process
    if not isinstance(handed, ast.Tuple) or not 0 <= place < len(handed.elts):
        return None
    return None if any(isinstance(e, ast.Starred) for e in handed.elts) else handed.elts[place]
