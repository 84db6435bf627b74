"""Gathers and reductions over all ranks of a tensor whose shape is each rank's own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.loading.gathers import as_it_is, evens_out, gathered_by
from codemods.analysis.names import dotted
from codemods.analysis.ranks.collectives import collective_at
from codemods.analysis.reaching import sure_value
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.own_shapes import OwnShape, Place, own_shape
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_GATHERS = lazy(r"gather|reduce|collect|all_|sync", re.I)
_SIZES = frozenset({"tensor", "as_tensor", "new_tensor", "full", "LongTensor", "IntTensor"})


@record
class OwnGather:
    """part: what `call` is given. inside: the collective in a function of the project that the call runs, else None."""

    call: ast.Call
    part: ast.expr
    shape: OwnShape
    inside: tuple[str, int] | None
    reduces: bool


def own_gathers(project: Project, module: SourceModule) -> Iterator[OwnGather]:
    analysis = variance(project)
    if not analysis.is_parallel(module):
        return
    for call in module.nodes(ast.Call):
        name = dotted(call.func)
        if not _GATHERS.search(name.rpartition(".")[2]) or "object" in name:
            continue
        function = module.function_of(call)
        for part in _tensors(call):
            taken = _taken_by(project, module, call, part)
            if taken is None or (function is not None and evens_out(function)) or _asks_for_size(module, function, part):
                continue
            shape = own_shape(Place(analysis, module, function), as_it_is(part))
            if shape is not None:
                there, inner, reduces = taken
                yield OwnGather(call, part, shape, None if inner is call else (there.path, inner.lineno), reduces)
                break


def _tensors(call: ast.Call) -> Iterator[ast.expr]:
    for part in (*call.args, *(k.value for k in call.keywords)):
        yield from part.elts if isinstance(part, (ast.Tuple, ast.List)) else (part,)


def _taken_by(
    project: Project, module: SourceModule, call: ast.Call, part: ast.expr
) -> tuple[SourceModule, ast.Call, bool] | None:
    """The collective that takes the tensor, and whether it reduces; None for one that lengths of the others are made for."""
    if any(k.arg == "use_gather_object" for k in call.keywords):
        return None
    if _is_reduced(project, module, call, part):
        return module, call, True
    whole = next((a for a in call.args if isinstance(a, (ast.Tuple, ast.List)) and part in a.elts), part)
    found = gathered_by(project, module, call, whole)
    if found is None:
        return None
    there, inner = found
    collective = collective_at(there, inner, project)
    lists = collective is not None and collective.name == "all_gather" and collective.framework == "torch"
    if lists and collective is not None and ".nn." not in collective.text and not _is_as_own(there, inner):
        return None
    return there, inner, False


def _is_reduced(project: Project, module: SourceModule, call: ast.Call, part: ast.expr) -> bool:
    found = collective_at(module, call, project)
    of_all = found is not None and not found.grouped and found.framework == "torch" and found.name == "all_reduce"
    return of_all and part in call.args[:1]


def _is_as_own(module: SourceModule, call: ast.Call) -> bool:
    """True where the list that is filled has room for as much from each rank: `[torch.empty_like(x) for _ in range(n)]`."""
    room = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "tensor_list"), None)
    value = sure_value(module, module.function_of(call), room) if isinstance(room, ast.Name) else room
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        return True
    if not isinstance(value, ast.ListComp) or len(value.generators) != 1:
        return False
    part = value.generators[0]
    counts = isinstance(part.iter, ast.Call) and dotted(part.iter.func) == "range"
    own = {n.id for n in (part.target, *walk(part.target)) if isinstance(n, ast.Name)}
    return counts and not any(isinstance(n, ast.Name) and n.id in own for n in (value.elt, *walk(value.elt)))


def _asks_for_size(module: SourceModule, function: FunctionNode | None, part: ast.expr) -> bool:
    """True where the size of the tensor is put into a tensor of its own, which the others are told."""
    inner = as_it_is(part)
    if not isinstance(inner, ast.Name):
        return False
    for use in module.reads_of(inner.id):
        if module.function_of(use) is not function:
            continue
        sized = False
        for up in module.ancestors(use):
            if isinstance(up, ast.stmt):
                break
            sized = sized or (isinstance(up, ast.Attribute) and up.attr in ("shape", "size", "numel"))
            if isinstance(up, ast.Call):
                name = dotted(up.func).rpartition(".")[2]
                sized = sized or name == "len"
                if sized and name in _SIZES:
                    return True
    return False
