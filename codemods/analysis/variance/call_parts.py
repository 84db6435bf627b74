"""A call with the values of its parts: what the rules of all kinds of calls ask for."""

from __future__ import annotations

import ast

from codemods.analysis.names import last, qualified
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import Kind, Value
from codemods.runtime.record import record

_OF_PLACES = ("device", "dtype", "map_location")


@record
class CallParts:
    """name: qualified, "" where it cannot be told. end: its last part, or the method. holder: the object whose method it is."""

    node: ast.Call
    name: str
    end: str
    holder: Value | None
    args: list[Value]
    keywords: dict[str, Value]

    @property
    def kind(self) -> Kind | None:
        return self.holder.kind if self.holder is not None else None

    @property
    def everything(self) -> list[Value]:
        """All that is handed over, but for where a tensor is to be and of which type."""
        return [*self.args, *(v for k, v in self.keywords.items() if k not in _OF_PLACES)]


def parts_of(state: State, node: ast.Call) -> CallParts:
    name = qualified(state.module, node.func)
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    holder = state.value(node.func.value) if isinstance(node.func, ast.Attribute) else None
    args = [state.value(a) for a in node.args]
    keywords = {k.arg or "**": state.value(k.value) for k in node.keywords}
    return CallParts(node, name, last(name) if name else method, holder, args, keywords)
