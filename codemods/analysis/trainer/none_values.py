"""`None` for an argument of Lightning's Trainer whose default it was in Lightning 1, and which Lightning 2 refuses."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping

from codemods.analysis.bindings import bindings_of
from codemods.analysis.literals import is_none
from codemods.analysis.trainer.lightning_trainers import Change, keywords, more_of
from codemods.analysis.trainer.lightning_upgrade import is_tried
from codemods.analysis.trainer.references import binding_scope, names_of
from codemods.analysis.version_pins import Version
from codemods.api.findings import DropKeyword, Edit, ReplaceExpression
from codemods.data.lightning_arguments import DEVICE_ARGUMENTS, KEPT_STRATEGIES, NONE_GONE, NONE_WAS_DEFAULT
from codemods.data.lightning_names import ALWAYS
from codemods.files.source import SourceModule
from codemods.runtime.record import record

_TAKES_GPUS = "Lightning 1 trained on the CPU where nothing asked for more, Lightning 2 takes the GPUs that it finds"


@record
class NoneValue:
    """The `None`s of one call that reach the Trainer, as one change: each of them is an error while another one stands.

    arguments: their names there; since: the first version that takes the new values.
    """

    arguments: tuple[str, ...]
    node: ast.expr
    since: Version
    change: Change


def none_values(module: SourceModule, call: ast.Call) -> NoneValue | None:
    """What becomes of the `None`s that a call hands the Trainer; None where there is none.

    Lightning 1 refuses `devices="auto"` while the accelerator is None, and takes it beside a name.
    """
    given = keywords(call)
    found = {name: nodes for name in NONE_WAS_DEFAULT if (nodes := _nones(module, given, name))}
    if not found:
        return None
    dropped = {name for name in found if is_none(given[name].value) and not more_of(module, call)}
    if "devices" in found and "devices" not in dropped:
        dropped.discard("accelerator")  # "auto" for the devices needs one
    edits: list[Edit] = [DropKeyword(module.path, module.span(call), name) for name in found if name in dropped]
    written = {name: nodes for name, nodes in found.items() if name not in dropped}
    edits += [ReplaceExpression(module.path, module.span(n), '"auto"') for nodes in written.values() for n in nodes]
    since = max([ALWAYS, *(NONE_WAS_DEFAULT[name] for name in written)])
    if "devices" in written and not is_surely_named(given.get("accelerator"), found.get("accelerator", ())):
        since = NONE_GONE
    doubts = (_TAKES_GPUS,) if "accelerator" in found else ()
    whys = tuple(why for name in written if (why := asked_elsewhere(module, given[name].value)))
    return NoneValue(tuple(found), next(iter(found.values()))[0], since, Change(tuple(edits), doubts, whys))


def _nones(module: SourceModule, given: Mapping[str, ast.keyword], name: str) -> list[ast.expr]:
    keyword = given.get(name)
    if keyword is None or (name != "strategy" and any(n in given for n in DEVICE_ARGUMENTS)):
        return []
    if is_none(keyword.value):
        return [keyword.value] if not is_tried(module, keyword.value, "TypeError", "ValueError") else []
    parts = ast.walk(keyword.value) if name == "accelerator" else ()
    if any(isinstance(n, ast.Constant) and n.value in KEPT_STRATEGIES for n in parts):
        return []  # it names a strategy, which goes elsewhere
    return [n for n in nones_of(module, keyword.value) if not is_tried(module, n, "TypeError", "ValueError")]


def is_surely_named(keyword: ast.keyword | None, replaced: Collection[ast.expr]) -> bool:
    """True for an accelerator that is a name on every way, where those that are `replaced` are named as well."""
    return keyword is not None and all(
        one in replaced or (isinstance(one, ast.Constant) and isinstance(one.value, str)) for one in _ways(keyword.value)
    )


def _ways(value: ast.expr) -> Iterator[ast.expr]:
    if isinstance(value, ast.IfExp):
        yield from _ways(value.body)
        yield from _ways(value.orelse)
    else:
        yield value


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
