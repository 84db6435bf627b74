"""What a progress bar shows beside its progress: a text that names the rank or its device makes it that rank's own bar."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from codemods.analysis.names import dotted
from codemods.analysis.output.effect_kinds import names_rank
from codemods.analysis.output.natures import values_of
from codemods.analysis.ranks.rank_sources import rank_source
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_LABELS = frozenset({"set_postfix", "set_postfix_str", "set_description", "set_description_str"})
_GIVEN = frozenset({"desc", "postfix"})
_MAKE_TEXT = frozenset({"str", "repr", "format", "join", "dict", "OrderedDict", "int", "update"})
_DEVICES = frozenset({"device", "device_id", "gpu", "gpu_id"})
# Whole names: `rank_loss` and `recall_rank5` are numbers of the work.
_RANK = lazy(
    r"(?:(?:global|local|node|world|proc|process|my|get|ddp|dist)_?)*rank|\w*process_index|getpid|gethostname", re.IGNORECASE
)


def is_labelled_by_rank(project: Project, module: SourceModule, bar: ast.Call, reads: Sequence[ast.expr]) -> bool:
    """True where the bar is made with a text that tells the ranks apart, or one of these reads gives it one."""
    labels = [k.value for k in bar.keywords if k.arg in _GIVEN]
    for read in reads:
        asked = module.parent(read)
        call = module.parent(asked) if isinstance(asked, ast.Attribute) and asked.attr in _LABELS else None
        if isinstance(call, ast.Call) and call.func is asked:
            labels += [*call.args, *(k.value for k in call.keywords)]
    labels += [v for given in labels if isinstance(given, ast.Name) for v in values_of(module, given)]
    return any(_is_of_the_rank(project, module, node) for given in labels for node in _shown(given))


def _shown(node: ast.AST) -> Iterator[ast.AST]:
    """What a label shows. What a call of the work is given is not shown: `loss.to(device)`."""
    yield node
    if isinstance(node, ast.Call):
        yield node.func
        if not isinstance(node.func, (ast.Name, ast.Attribute)) or _end(node.func) not in _MAKE_TEXT:
            return
    for below in ast.iter_child_nodes(node):
        yield from _shown(below)


def _end(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr


def _is_of_the_rank(project: Project, module: SourceModule, node: ast.AST) -> bool:
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return False
    if _RANK.fullmatch(_end(node)) is not None:
        return True
    if _end(node) not in _DEVICES:
        return False
    if rank_source(module, node, project) is not None:
        return True
    return any(names_rank(module.text_of(v)) or dotted(v).endswith("ccelerator.device") for v in values_of(module, node))
