"""What a progress bar shows beside its progress: a text that names the rank or its device makes it that rank's own bar."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from codemods.analysis.names import dotted
from codemods.analysis.output.effect_kinds import names_rank
from codemods.analysis.output.made_of_rank import end_of_name, is_rank_by_name, shown_parts
from codemods.analysis.output.natures import values_of
from codemods.analysis.ranks.rank_sources import rank_source
from codemods.files.source import SourceModule
from codemods.store.project import Project

_LABELS = frozenset({"set_postfix", "set_postfix_str", "set_description", "set_description_str"})
_GIVEN = frozenset({"desc", "postfix"})
_DEVICES = frozenset({"device", "device_id", "gpu", "gpu_id"})


def is_labelled_by_rank(project: Project, module: SourceModule, bar: ast.Call, reads: Sequence[ast.expr]) -> bool:
    """True where the bar is made with a text that tells the ranks apart, or one of these reads gives it one."""
    labels = [k.value for k in bar.keywords if k.arg in _GIVEN]
    for read in reads:
        asked = module.parent(read)
        call = module.parent(asked) if isinstance(asked, ast.Attribute) and asked.attr in _LABELS else None
        if isinstance(call, ast.Call) and call.func is asked:
            labels += [*call.args, *(k.value for k in call.keywords)]
    labels += [v for given in labels if isinstance(given, ast.Name) for v in values_of(module, given)]
    return any(_is_of_the_rank(project, module, node) for given in labels for node in shown_parts(given))


def _is_of_the_rank(project: Project, module: SourceModule, node: ast.AST) -> bool:
    if is_rank_by_name(node):
        return True
    if not isinstance(node, (ast.Name, ast.Attribute)) or end_of_name(node) not in _DEVICES:
        return False
    if rank_source(module, node, project) is not None:
        return True
    return any(names_rank(module.text_of(v)) or dotted(v).endswith("ccelerator.device") for v in values_of(module, node))
