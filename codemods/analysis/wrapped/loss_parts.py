"""Which expressions of a file its losses are made of, and which of them go past the DDP wrapper."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted
from codemods.analysis.wrapped.losses import backward_passes, behind
from codemods.analysis.wrapped.past_wrapper import past_the_wrapper
from codemods.files.source import SourceModule
from codemods.store.project import Project


class LossParts:
    """What the losses of the file are made of: worked out where the first finding asks."""

    def __init__(self, project: Project, module: SourceModule) -> None:
        self.project, self.module = project, module
        self._parts: set[int] | None = None
        self._past: dict[int, bool] | None = None

    def goes_past(self, node: ast.AST) -> bool:
        """True for `model.module` in a training forward that no call of the wrapper takes part in."""
        return id(node) in self._gone_past()

    def runs_past(self, node: ast.AST) -> bool:
        """True where it is called as it is there: a call of the wrapper in its place is all it takes."""
        return self._gone_past().get(id(node), False)

    def _gone_past(self) -> dict[int, bool]:
        if self._past is None:
            found = [p for one in backward_passes(self.module) for p in past_the_wrapper(self.project, one)]
            self._past = {id(node): _runs(past.call.func, node) for past, _, node in found if past.module is self.module}
        return self._past

    def made_of(self, node: ast.AST) -> bool:
        if self._parts is None:
            calls = (b.call for one in backward_passes(self.module) for b in behind(self.project, one) if b.module is self.module)
            self._parts = {id(n) for c in calls for n in ast.walk(c.func) if dotted(c.func) or n is not c.func}
        return id(node) in self._parts


def _runs(func: ast.expr, node: ast.expr) -> bool:
    """True for `node(x)` and `node.forward(x)`."""
    return func is node or (isinstance(func, ast.Attribute) and func.attr == "forward" and func.value is node)
