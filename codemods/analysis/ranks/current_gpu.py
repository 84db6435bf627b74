"""What a spawned rank does on the current GPU, which is the first one in each process that has chosen none.

`.cuda()` and `.to("cuda")` put a tensor there. The collectives of objects put their bytes there where the group is one of NCCL.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.class_index import ClassSite, class_facts
from codemods.analysis.guards.called_with_group import SPEAKING, words_of
from codemods.analysis.guards.entry_points import Entry
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.values_behind import Value, values_behind
from codemods.files.left_alone import left
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.store.project import Project

# One of these chooses the GPU of the process, or leaves it only one.
CHOOSES = (b"set_device", b"CUDA_VISIBLE_DEVICES", b"cuda.device(", b"set_default_device",
           b"deepspeed", b"ccelerat", b"ightning")  # fmt: skip
_OBJECTS = frozenset({"broadcast_object_list", "all_gather_object", "gather_object", "scatter_object_list"})
_MOST = 80  # functions below one rank


def on_current_gpu(
    project: Project, module: SourceModule, start: ast.Call, spawned: Sequence[Entry], *, nccl: bool
) -> tuple[SourceModule, ast.Call] | None:
    """The first such call that the ranks come to, or that their files have; None where their program chooses the device."""
    for path in sorted({p for e in spawned for p in whole_program(project, e.module.path)}):
        data = project.read(path) or b""
        if (word := next((w for w in CHOOSES if w in data), None)) is not None:
            left(module, start, "{} chooses the device of a process: it holds {}", path, word.decode())
            return None
    starting = _starting_class(project, module, start)
    for site in _below(project, spawned, starting):
        for call in (n for n in walk_scope(site.node) if isinstance(n, ast.Call)):
            if _is_bare(call) and not _is_alone(site.module, call):
                return site.module, call
            if nccl and _is_of_objects(site.module, call) and not _is_for_one(site.module, call):
                return site.module, call
    homes = {module.path: module, **{e.module.path: e.module for e in spawned}}
    moves = ((home, c) for home in homes.values() for c in home.calls_named("cuda", "to"))
    return next(((home, c) for home, c in moves if _is_bare(c) and not _is_alone(home, c)), None)


def starts_one_for_each_gpu(project: Project, entry: Entry) -> bool:
    """True where `mp.spawn` starts as many ranks as the machine has GPUs."""
    function = entry.function
    for call in entry.module.calls_named("spawn", "start_processes") if function is not None else ():
        if function is None or not call.args or last(dotted(call.args[0])) != function.name:
            continue
        for given in (k.value for k in call.keywords if k.arg == "nprocs"):
            behind = values_behind(project, entry.module, given)
            if behind and all(_counts_gpus(v) for v in behind):
                return True
    return False


def _counts_gpus(value: Value) -> bool:
    return isinstance(value.node, ast.Call) and qualified(value.module, value.node.func) == "torch.cuda.device_count"


def _starting_class(project: Project, module: SourceModule, start: ast.Call) -> ClassSite | None:
    """The class whose constructor starts the group: what the rank asks of its object is run by it."""
    function, owner = module.function_of(start), module.class_of(start)
    made = owner is not None and function is not None and function.name == "__init__"
    return ClassSite(module, owner) if made and owner is not None else None


def _below(project: Project, spawned: Sequence[Entry], starting: ClassSite | None) -> Iterator[FunctionSite]:
    """The functions that the ranks run, as far as calls by name show them, and methods of the object that starts the group."""
    queue = [FunctionSite(e.module, e.function) for e in spawned if e.function is not None]
    seen: set[FunctionNode] = {s.node for s in queue}
    while queue:
        site = queue.pop(0)
        yield site
        for call in (n for n in walk_scope(site.node) if isinstance(n, ast.Call)):
            inner = called_function(project, site.module, call) or _method_of(project, starting, call)
            if inner is not None and inner.node not in seen and len(seen) < _MOST and not _is_alone(site.module, call):
                seen.add(inner.node)
                queue.append(inner)


def _method_of(project: Project, starting: ClassSite | None, call: ast.Call) -> FunctionSite | None:
    if starting is None or not isinstance(call.func, ast.Attribute):
        return None
    found = class_facts(project, starting.module, starting.node).method(call.func.attr)
    return FunctionSite(found[0].module, found[1]) if found is not None else None


def _is_bare(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr == "cuda":
        return not call.args and not call.keywords and dotted(call.func) != "torch.cuda"
    if call.func.attr != "to" or len(call.args) != 1:
        return False
    return isinstance(call.args[0], ast.Constant) and call.args[0].value == "cuda"


def _is_of_objects(module: SourceModule, call: ast.Call) -> bool:
    name = qualified(module, call.func)
    named = name.startswith("torch.distributed.") and last(name) in _OBJECTS
    return named and not any(k.arg in ("group", "device") for k in call.keywords) and len(call.args) < 3


def _is_alone(module: SourceModule, node: ast.AST) -> bool:
    """True in a branch of a test for several processes, and of a script's top level, which the parent runs as well."""
    if module.function_of(node) is None:
        return True
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        if isinstance(up, ast.If):
            words = words_of(up.test)
            if any(s in w.lower() for w in words for s in (*SPEAKING, "rank", "gpu")):
                return True
    return False


def _is_for_one(module: SourceModule, call: ast.Call) -> bool:
    """True for a collective in an arm that some other test decides over than the question whether there is a group."""
    for up in module.ancestors(call):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        if isinstance(up, ast.If) and not words_of(up.test) & {"is_initialized", "is_available"}:
            return True
    return False
