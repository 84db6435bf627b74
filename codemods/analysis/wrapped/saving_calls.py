"""What saves states, and what of them: `torch.save`, and functions of the project that save what they are handed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in
from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.handed import held_as
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.wrapped.bound_places import end_of
from codemods.analysis.wrapped.wrapper_tests import arms_exclude
from codemods.files.source import SourceModule
from codemods.store.project import Project


def saving_calls(
    project: Project, module: SourceModule, *, torch_only: bool = False
) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Each call that saves, and what it writes: of `torch.save`, of a function that saves a dict of states which it is handed, as
    `save_checkpoint({"model": model.state_dict()}, path)` does, and, unless `torch_only`, of an Accelerator.
    """
    for call in module.calls_named("save"):
        owner = last(dotted(call.func).rpartition(".")[0]).lower()
        if call.args and (qualified(module, call.func) == "torch.save" or ("accelerator" in owner and not torch_only)):
            yield call, call.args[0]
    dicts = {id(up): up for up in map(module.parent, module.calls_named("state_dict")) if isinstance(up, ast.Dict)}
    for held in dicts.values():
        for call, given in _handing_on(module, held):
            if _is_saved_as_handed(project, module, call, given):
                yield call, held


def _handing_on(module: SourceModule, held: ast.Dict) -> Iterator[tuple[ast.Call, ast.expr]]:
    """The calls that a dict is handed to, and what stands there: the dict itself, or its name."""
    up = module.parent(held)
    if isinstance(up, ast.Assign) and len(up.targets) == 1 and isinstance(up.targets[0], ast.Name):
        name, scope = up.targets[0].id, module.function_of(held)
        others = [b.node for b in bindings_in(module, scope, name) if b.value is not held]
        alone = all(arms_exclude(module, other, up) for other in others)
        for read in module.reads_of(name) if alone else ():
            call = module.parent(read)
            own = isinstance(read, ast.Name) and module.function_of(read) is scope and read.lineno > held.lineno
            if own and isinstance(call, ast.Call) and not arms_exclude(module, up, read):
                yield call, read
        return
    call = module.parent(up) if isinstance(up, ast.keyword) else up
    if isinstance(call, ast.Call):
        yield call, held


def _is_saved_as_handed(project: Project, module: SourceModule, call: ast.Call, given: ast.expr) -> bool:
    """True where the function that is called hands that parameter to `torch.save` as it is."""
    site = called_function(project, module, call)
    if site is None or not site.module.holds(b"torch.save("):
        return False
    name = held_as(site, call, given)
    if not name and call.args[:1] == [given] and _hands_all_on(site):
        return True
    return bool(name) and any(c.args and dotted(c.args[0]) == name for c in _saves_of_torch(site))


def _hands_all_on(site: FunctionSite) -> bool:
    """True for `def save_on_master(*args, **kwargs)` that hands them to `torch.save` as they are."""
    arguments = site.node.args
    if arguments.vararg is None or arguments.args or arguments.posonlyargs:
        return False
    given = (c.args[0] for c in _saves_of_torch(site) if c.args)
    return any(isinstance(g, ast.Starred) and dotted(g.value) == arguments.vararg.arg for g in given)


def _saves_of_torch(site: FunctionSite) -> Iterator[ast.Call]:
    calls = (c for c in site.module.calls_named("save") if site.module.function_of(c) is site.node)
    return (c for c in calls if qualified(site.module, c.func) == "torch.save")


def of_state(node: ast.expr | None) -> ast.expr | None:
    """`net` of `net.state_dict()`; None for anything else."""
    func = node.func if isinstance(node, ast.Call) else None
    return func.value if isinstance(func, ast.Attribute) and func.attr == "state_dict" else None


def entries(module: SourceModule, node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """(key, value) of what is saved: a dict written out, one that a name holds, or the value itself."""
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant):
                yield str(key.value), value
        return
    if isinstance(node, ast.Call) and dotted(node.func) == "dict":
        yield from ((k.arg, k.value) for k in node.keywords if k.arg)
        return
    if isinstance(node, ast.Name):
        scope = module.function_of(node)
        above = [b for b in bindings_in(module, scope, node.id) if not b.part and end_of(b.node) < node.lineno]
        held = above[0].value if len(above) == 1 else None
        if isinstance(held, ast.Dict) or (isinstance(held, ast.Call) and dotted(held.func).endswith("dict")):
            yield from entries(module, held)
            return
    yield "", node
