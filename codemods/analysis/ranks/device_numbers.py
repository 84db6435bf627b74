"""Where a GPU is chosen by the number of a process among all nodes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.guards.global_rank_at import is_global
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.output.natures import values_of
from codemods.analysis.ranks.misnamed_ranks import DEVICE_CALLS, DEVICE_KEYWORDS
from codemods.analysis.ranks.proven_rank import is_proven_global, worked_out
from codemods.files.source import SourceModule
from codemods.store.project import Project

_WRAPS = frozenset({"DistributedDataParallel", "DDP"})
_SHOWS = frozenset({"print", "debug", "info", "warning", "error", "log"})


def numbers_of_devices(project: Project, module: SourceModule) -> Iterator[ast.expr]:
    """The global ranks that choose the GPU: as the device itself, in a list, in a text."""
    for call in module.nodes(ast.Call):
        name, end = qualified(module, call.func), last(dotted(call.func)) or getattr(call.func, "attr", "")
        given = [k.value for k in call.keywords if k.arg in DEVICE_KEYWORDS]
        method = isinstance(call.func, ast.Attribute)
        if name in DEVICE_CALLS:
            given += call.args[-1:]
        elif method and end in ("cuda", "to"):
            given += call.args[:1]
        elif last(name) not in _WRAPS:
            given = [g for g in given if says_where(module, g)]
        for one in given:
            yield from (r for r in _ranks_in(one) if _is_global(project, module, r))
    for text in module.nodes(ast.JoinedStr):  # whatever takes it: the text says what it is
        up = module.parent(text)
        handed = isinstance(up, ast.Call) and last(dotted(up.func)) not in _SHOWS and any(a is text for a in up.args)
        if (handed or isinstance(up, ast.Assign)) and len(text.values) == 2:
            yield from (r for r in _ranks_in(text) if r is not text and _is_global(project, module, r))


def says_where(module: SourceModule, given: ast.expr) -> bool:
    """False for `device=rank` of any function, which says little."""
    if isinstance(given, ast.Call):
        return isinstance(given.func, ast.Attribute) and given.func.attr == "format"
    return not isinstance(given, (ast.Name, ast.Attribute)) or process_index(module, given) is not None


def _ranks_in(node: ast.expr) -> Iterator[ast.expr]:
    """What chooses the GPU: `rank`, `[rank]`, `{"": rank}`, `f"cuda:{rank}"`, `"cuda:{}".format(rank)`, `"cuda:%d" % rank`."""
    if isinstance(node, (ast.List, ast.Tuple)):
        for element in node.elts:
            yield from _ranks_in(element)
    elif isinstance(node, ast.Dict):
        if len(node.keys) == 1 and isinstance(node.keys[0], ast.Constant) and node.keys[0].value == "":
            yield from _ranks_in(node.values[0])
    elif isinstance(node, ast.JoinedStr):
        if len(node.values) == 2 and _is_cuda(node.values[0]) and isinstance(node.values[1], ast.FormattedValue):
            yield node.values[1].value
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and _is_cuda(node.left):
        yield node.right
    elif isinstance(node, ast.IfExp):  # `f"cuda:{rank}" if torch.cuda.is_available() else "cpu"`
        yield from (*_ranks_in(node.body), *_ranks_in(node.orelse))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        if _is_cuda(node.func.value) and len(node.args) == 1:
            yield node.args[0]
    else:
        yield node


def _is_cuda(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("cuda:")


def _is_global(project: Project, module: SourceModule, node: ast.expr) -> bool:
    if is_global(module, node) or process_index(module, node) is not None:
        return True
    return is_proven_global(project, module, node) or worked_out(project, module, node) is not None


def process_index(module: SourceModule, node: ast.expr) -> ast.Attribute | None:
    """`accelerator.process_index` of an object of Accelerate, and a name whose one value it is."""
    if isinstance(node, ast.Name):
        values = values_of(module, node)
        return process_index(module, values[0]) if len(values) == 1 and isinstance(values[0], ast.Attribute) else None
    if not isinstance(node, ast.Attribute) or node.attr != "process_index":
        return None
    made = [node.value] if isinstance(node.value, ast.Call) else values_of(module, node.value)
    names = {last(qualified(module, v.func)) for v in made if isinstance(v, ast.Call)}
    return node if names and names <= {"Accelerator", "PartialState", "AcceleratorState"} else None
