"""Networks that each process of a launcher trains in a `DataParallel` round its own device, which shares nothing with the others.

`DataParallel` splits a batch over the devices of one process. Round one device it calls the module, and that is all.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import class_facts
from codemods.analysis.loading.origins import origins
from codemods.analysis.names import dotted, qualified
from codemods.analysis.ranks.rank_sources import rank_source
from codemods.analysis.ranks.uses import Uses, constructions, uses_of
from codemods.analysis.wrapped.arms import are_other_arms
from codemods.analysis.wrapped.wraps import inner_of, is_prepare, wraps_in
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_NAMES = ("torch.nn.DataParallel", "torch.nn.parallel.DataParallel")
_DEPTH = 4
# A test that may keep the place to a run of one process.
_OF_RUNS = lazy(r"(?i)distrib|world|ddp|gpus|n_?gpu|device_count|parallel|multi|launch|initiali|rank|n_?proc|num_proc|strategy")
_OTHER_MEANS = (b"hvd.", b"horovod", b"deepspeed", b"FullyShardedDataParallel", b"GradBucket", b".prepare(")


@record
class OneDevice:
    """wrap: the `DataParallel`. source: where the process's own number comes from. read: its parameters, for an optimizer."""

    module: SourceModule
    wrap: ast.Call
    source: tuple[SourceModule, int]
    read: ast.expr


def one_device_parallel(project: Project, module: SourceModule) -> Iterator[OneDevice]:
    if any(module.holds(word) for word in _OTHER_MEANS) or not module.calls_named("backward") or not module.calls_named("step"):
        return
    for call in module.calls_named("DataParallel"):
        device = _only_device(module, call)
        if device is None or not call.args:
            continue
        source, names = _of_the_process(project, module, device), _names(project, module, call)
        read = next((r for r in module.reads_of("parameters") if _holder(r) in names), None)
        if source is None or read is None:
            continue
        if any(_wraps_it(module, wrap, call, names) for wrap in wraps_in(module)):
            continue
        if any(is_prepare(module, c) for c in module.calls_named("prepare")) or not _comes_with_several(project, module, call, 0):
            continue
        yield OneDevice(module, call, source, read)


def _wraps_it(module: SourceModule, wrap: ast.Call, call: ast.Call, names: set[str]) -> bool:
    """True for a DDP of one of these names; a plain one is a name of its function."""
    inner = dotted(inner_of(wrap))
    here = "." in inner or module.function_of(wrap) is module.function_of(call)
    return here and inner in names and not are_other_arms(module, wrap, call)


def _holder(read: ast.expr) -> str:
    return dotted(read.value) if isinstance(read, ast.Attribute) else ""


def _only_device(module: SourceModule, call: ast.Call) -> ast.expr | None:
    if qualified(module, call.func) not in _NAMES:
        return None
    given = next((k.value for k in call.keywords if k.arg == "device_ids"), call.args[1] if len(call.args) > 1 else None)
    return given.elts[0] if isinstance(given, (ast.List, ast.Tuple)) and len(given.elts) == 1 else None


def _of_the_process(project: Project, module: SourceModule, device: ast.expr) -> tuple[SourceModule, int] | None:
    """Where the device is the number of the process on its machine."""
    for origin in origins(project, module, device):
        node = origin.node
        if origin.known and isinstance(node, ast.Call) and dotted(node.func) in ("int", "torch.device") and len(node.args) == 1:
            node = node.args[0]
        if origin.known and not origin.path and rank_source(origin.module, node, project) is not None:
            return origin.module, origin.line
    return (module, device.lineno) if rank_source(module, device, project) is not None else None


def _names(project: Project, module: SourceModule, call: ast.Call) -> set[str]:
    """What the wrapped network is called: where it is bound, and where the function that gives it back is called."""
    up, function = module.parent(call), module.function_of(call)
    names = {dotted(t) for t in up.targets} - {""} if isinstance(up, ast.Assign) else set()
    if function is None or not (isinstance(up, ast.Return) or _gives_back(module, function, names)):
        return names
    owner = module.parent(function)
    if isinstance(owner, ast.ClassDef):
        sites = class_facts(project, module, owner).lineage
        places = [(s.module, n) for s in sites for n in walk(s.node) if isinstance(n, ast.Assign)]
        wanted = f"self.{function.name}"
    else:
        places, wanted = [(module, n) for n in module.nodes(ast.Assign)], function.name
    for _, assign in places:
        if isinstance(assign.value, ast.Call) and dotted(assign.value.func) == wanted:
            names |= {dotted(t) for t in assign.targets} - {""}
    return names


def _gives_back(module: SourceModule, function: FunctionNode, names: set[str]) -> bool:
    given = [r.value for r in module.nodes(ast.Return) if module.function_of(r) is function]
    return any(dotted(value) in names for value in given if value is not None)


def _comes_with_several(project: Project, module: SourceModule, node: ast.AST, depth: int) -> bool:
    """True where no test on the way there may keep the place to a run of one process."""
    function = module.function_of(node)
    for up in module.ancestors(node):
        if isinstance(up, (ast.If, ast.IfExp, ast.While)) and _OF_RUNS.search(module.text_of(up.test)):
            return False
        if up is function:
            break
    if function is None or depth > _DEPTH:
        return True
    if any(_leaves(module, test, function, node) for test in module.nodes(ast.If)):
        return False
    uses = _uses(project, module, function)
    if uses is None or uses.more:
        return False
    calls = uses.outside_tests().calls
    return all(_comes_with_several(project, site.module, site.call, depth + 1) for site in calls)


def _uses(project: Project, module: SourceModule, function: FunctionNode) -> Uses | None:
    owner = module.parent(function)
    if isinstance(owner, ast.ClassDef) and function.name == "__init__":
        return constructions(project, module, owner)
    return uses_of(project, module, function)


def _leaves(module: SourceModule, test: ast.If, function: FunctionNode, node: ast.AST) -> bool:
    """True for `if distributed: return DDP(net)` above the place."""
    if module.function_of(test) is not function or test.lineno >= getattr(node, "lineno", 0):
        return False
    ends = any(isinstance(n, (ast.Return, ast.Raise)) for s in test.body for n in walk(s))
    return ends and _OF_RUNS.search(module.text_of(test.test)) is not None
