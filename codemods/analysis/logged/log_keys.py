"""Is the key of a `self.log` the same on every rank? Values are paired by position, so another key means another value."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.logged.local_values import local_values
from codemods.analysis.logged.log_calls import LogCall, key_nodes
from codemods.analysis.names import dotted
from codemods.analysis.ranks.uniform import kept_equal
from codemods.analysis.short_texts import shorter
from codemods.files.source import child_nodes
from codemods.runtime.record import record

_TEXT_METHODS = frozenset({"format", "lower", "upper", "title", "capitalize", "strip", "replace", "join"})


@record
class KeyPart:
    """A part of a key that may differ between ranks. configured: it is an attribute of the module."""

    text: str
    configured: bool


def unsettled_parts(log: LogCall, literal: frozenset[str]) -> list[KeyPart]:
    """What in the keys of the call may differ between ranks. literal: parameters that every caller gives a literal."""
    settled = literal | _loop_names(log)
    return [part for key in key_nodes(log) if (part := _unsettled(log, key, settled)) is not None]


def _unsettled(log: LogCall, key: ast.expr, settled: frozenset[str]) -> KeyPart | None:
    """The first part that data may decide, else the first that configuration does."""
    found = list(_parts(log, key, settled))
    return next((p for p in found if not p.configured), found[0] if found else None)


def _parts(log: LogCall, node: ast.AST, settled: frozenset[str]) -> Iterator[KeyPart]:
    if isinstance(node, ast.Attribute):
        name = dotted(node)
        configured = name.startswith("self.") and "rank" not in node.attr
        if not (configured and kept_equal(name)):
            yield KeyPart(shorter(log.module, node), configured)
    elif isinstance(node, ast.Name):
        if node.id not in settled and not _is_constant_name(log, node.id):
            yield KeyPart(node.id, False)
    elif isinstance(node, ast.Call):
        plain = isinstance(node.func, ast.Name) and node.func.id == "str"
        if not plain and not (isinstance(node.func, ast.Attribute) and node.func.attr in _TEXT_METHODS):
            yield KeyPart(shorter(log.module, node), False)
            return
        receiver = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        for argument in (*receiver, *node.args, *(k.value for k in node.keywords)):
            yield from _parts(log, argument, settled)
    else:
        for part in child_nodes(node):
            yield from _parts(log, part, settled)


def _is_constant_name(log: LogCall, name: str) -> bool:
    """True for a local name that is given one literal only, and for a name in capitals from the top of a file."""
    found = local_values(log.project, log.module, log.function).get(name, [])
    if not found:
        return name.isupper()
    return len(found) == 1 and isinstance(found[0].value, ast.Constant) and not found[0].loop


def _loop_names(log: LogCall) -> frozenset[str]:
    """The variables of the `for` statements round the call: the loop itself is judged where it stands."""
    loops = [up for up in log.module.ancestors(log.call) if isinstance(up, ast.For)]
    return frozenset(n.id for loop in loops for n in ast.walk(loop.target) if isinstance(n, ast.Name))
