"""`None` for an argument of Lightning's Trainer whose default it was in Lightning 1, and which Lightning 2 refuses."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.literals import is_none
from codemods.analysis.trainer.lightning_trainers import Change, keywords, more_of
from codemods.analysis.trainer.lightning_upgrade import is_tried
from codemods.analysis.trainer.references import binding_scope, names_of
from codemods.api.findings import DropKeyword, ReplaceExpression
from codemods.data.lightning_arguments import DEVICE_ARGUMENTS, KEPT_STRATEGIES, NONE_WAS_DEFAULT
from codemods.data.lightning_names import ALWAYS, Minor
from codemods.files.source import SourceModule
from codemods.runtime.record import record

_TAKES_GPUS = "Lightning 1 trained on the CPU where nothing asked for more, Lightning 2 takes the GPUs that it finds"


@record
class NoneValue:
    """One `None` that reaches the Trainer. argument: its name there; since: the first version that takes the new value."""

    argument: str
    node: ast.expr
    since: Minor
    change: Change


def none_values(module: SourceModule, call: ast.Call) -> Iterator[NoneValue]:
    given = keywords(call)
    for argument, since in NONE_WAS_DEFAULT.items():
        keyword = given.get(argument)
        if keyword is None or (argument != "strategy" and any(n in given for n in DEVICE_ARGUMENTS)):
            continue
        doubts = (_TAKES_GPUS,) if argument == "accelerator" else ()
        if is_none(keyword.value) and not more_of(module, call):
            drop = DropKeyword(module.path, module.span(call), argument)
            yield NoneValue(argument, keyword.value, ALWAYS, Change((drop,), doubts))
            continue
        if argument == "accelerator" and any(
            isinstance(n, ast.Constant) and n.value in KEPT_STRATEGIES for n in ast.walk(keyword.value)
        ):
            continue  # it names a strategy, which goes elsewhere
        for node in [keyword.value] if is_none(keyword.value) else nones_of(module, keyword.value):
            if is_tried(module, node, "TypeError", "ValueError"):
                continue
            edit = ReplaceExpression(module.path, module.span(node), '"auto"')
            why = asked_elsewhere(module, keyword.value)
            yield NoneValue(argument, node, since, Change((edit,), doubts, (why,) if why else ()))


def nones_of(module: SourceModule, value: ast.expr) -> Iterator[ast.Constant]:
    """Those that a conditional expression may come to, and those that a name of the same function is bound to."""
    if isinstance(value, ast.IfExp):
        for part in (value.body, value.orelse):
            if isinstance(part, ast.Constant) and part.value is None:
                yield part
            elif isinstance(part, ast.IfExp):
                yield from nones_of(module, part)
    elif isinstance(value, ast.Name):
        for bound in bindings_of(module, value):
            own = bound.value if not bound.part and not bound.parameter else None
            if isinstance(bound.node, (ast.Assign, ast.AnnAssign)) and isinstance(own, ast.Constant) and own.value is None:
                yield own
            elif isinstance(own, ast.IfExp):
                yield from nones_of(module, own)


def asked_elsewhere(module: SourceModule, value: ast.expr) -> str:
    """Where the name is used for anything but this argument: "auto" would not mean there what None means."""
    if not isinstance(value, ast.Name):
        return ""
    loads = [n for n in names_of(module, value.id, binding_scope(module, value)) if isinstance(n.ctx, ast.Load)]
    other = next((n for n in loads if n is not value and not _hands_on(module, n, value.id)), None)
    return f'{value.id} is read at line {other.lineno} as well: write "auto" where that takes it, too' if other else ""


def _hands_on(module: SourceModule, node: ast.Name, name: str) -> bool:
    """True for `name=name` of another call, which makes another Trainer of the same kind."""
    up = module.parent(node)
    return isinstance(up, ast.keyword) and up.arg in NONE_WAS_DEFAULT
