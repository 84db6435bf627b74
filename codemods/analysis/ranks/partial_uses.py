"""Where every rank uses what rank 0 alone has, and what is None on the others: here, or in a function that it is handed to."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import Binding, bindings_in, name_or_field_bindings
from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.handed import held_as
from codemods.analysis.literals import is_none
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.each_node import guards_of_each_node
from codemods.analysis.ranks.none_elsewhere import Asked, Partial, gives_none_elsewhere, none_elsewhere
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at, split_of
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.used_as_there import is_kept_from, needs_value
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import FunctionNode, SourceModule, line_of
from codemods.runtime.record import record
from codemods.store.project import Project

_HANDED = 2  # functions that a value is followed into, and calls that lead to a use
_FEW = 3  # calls of a name that may all be of one method
_BY_GUARDS = Asked(
    "guards", lambda project, module, node: ranks_at(module, node, project=project),
    lambda project, module, test: split_of(module, test, project),
)  # fmt: skip


@record
class PartialUse:
    """node: the use, in `module`. value: what is used, as it is written there. partial: where rank 0 gets it. inside: the place
    in another function that needs the value, where `node` only hands it on. by_node: each node's first process comes to it.
    """

    module: SourceModule
    node: ast.expr
    value: str
    partial: Partial
    inside: tuple[SourceModule, ast.expr] | None = None
    by_node: bool = False

    @property
    def shown(self) -> str:
        return f"`{self.value}`" if not isinstance(self.node, ast.Call) else f"what `{self.value}` gives"

    @property
    def made(self) -> tuple[str, int]:
        return self.partial.module.path, line_of(self.partial.node)

    @property
    def place(self) -> tuple[str, int]:
        """Where the value is needed."""
        module, node = self.inside or (self.module, self.node)
        return module.path, node.lineno

    @property
    def where(self) -> str:
        return "{}:{}".format(*self.place)

    @property
    def error(self) -> str:
        module, node = self.inside or (self.module, self.node)
        return "AttributeError" if isinstance(module.parent(node), ast.Attribute) else "TypeError"

    def message(self, module: SourceModule) -> str:
        """What happens, as seen from the file of the use."""
        path, line = self.made
        made = f"line {line}" if path == module.path else f"{path}:{line}"
        if self.by_node:
            who = "the first process of every node uses it here: that of a second node ends"
            return f"{self.shown} is None on all ranks but rank 0 of the run ({made}), and {who} with {self.error}"
        who = "every rank uses it here" if self.inside is None else f"every rank hands it on here, to be used in {self.where}"
        return f"{self.shown} is None on all ranks but 0 ({made}), and {who}: the others end with {self.error}"


def partial_uses(project: Project, module: SourceModule) -> Iterator[PartialUse]:
    """The first such use of each value, in each function."""
    seen: set[tuple[int, str]] = set()
    for node in _reads(project, module):
        name = dotted(node.func if isinstance(node, ast.Call) else node)
        key = (id(module.function_of(node)), name)
        if key not in seen and (found := partial_use(project, module, node)) is not None:
            seen.add(key)
            yield found


def partial_use(project: Project, module: SourceModule, node: ast.expr) -> PartialUse | None:
    """What is wrong with one use of a name, a field or what a call gives; None where nothing is."""
    handed = None if isinstance(node, ast.Call) else _handed_to(module, node)
    if handed is None and not needs_value(module, node):
        return None
    partial = none_elsewhere(project, module, node, _BY_GUARDS)
    if partial is None:
        return None
    guards = guards_of_each_node(project, module, node) if partial.ranks is Ranks.ZERO else ()
    by_node = bool(guards)
    if not by_node and not _is_of_every_rank(project, module, node, partial):
        return None
    name = dotted(node.func if isinstance(node, ast.Call) else node)
    if is_kept_from(project, module, node, name, {id(getattr(g.node, "test", None)) for g in guards}):
        return None
    if handed is None:
        return PartialUse(module, node, name, partial, by_node=by_node)
    inside = _inside(project, module, handed, node, 1)
    return PartialUse(module, node, name, partial, inside) if inside is not None else None


def given_to_others(project: Project, module: SourceModule) -> Iterator[PartialUse]:
    """The uses in other files of what a function of this one gives rank 0 alone: the first of each function."""
    for function in module.functions:
        if gives_none_elsewhere(project, FunctionSite(module, function), _BY_GUARDS) is None:
            continue
        for site in uses_of(project, module, function).outside_tests().calls:
            if site.module is module:
                continue
            called = called_function(project, site.module, site.call)
            found = _use_of_result(project, site.module, site.call) if called is not None and called.node is function else None
            if found is not None:
                yield found
                break


def _use_of_result(project: Project, module: SourceModule, call: ast.Call) -> PartialUse | None:
    if (found := partial_use(project, module, call)) is not None:
        return found
    up = module.parent(call)
    name = up.targets[0] if isinstance(up, ast.Assign) else None
    for read in module.reads_of(name.id) if isinstance(name, ast.Name) else ():
        if module.function_of(read) is module.function_of(call) and read.lineno > call.lineno:
            if (found := partial_use(project, module, read)) is not None:
                return found
    return None


def _reads(project: Project, module: SourceModule) -> Iterator[ast.expr]:
    """What may hold such a value, where it is read."""
    for call in module.nodes(ast.Call):
        if dotted(call.func) and needs_value(module, call):
            yield call
    judged: dict[int, bool] = {}
    nodes: list[ast.Name | ast.Attribute] = [*module.nodes(ast.Name), *module.nodes(ast.Attribute)]
    for node in nodes:
        if not isinstance(node.ctx, ast.Load) or (isinstance(node, ast.Attribute) and dotted(node.value) != "self"):
            continue
        bound = name_or_field_bindings(module, node)
        if id(bound) not in judged:
            judged[id(bound)] = any(_is_made_by_rank(project, module, b) for b in bound)
        if judged[id(bound)]:
            yield node


def _is_made_by_rank(project: Project, module: SourceModule, one: Binding) -> bool:
    if one.value is None or one.parameter:
        return False
    if isinstance(one.value, (ast.IfExp, ast.Call)) and none_elsewhere(project, module, one.value, _BY_GUARDS) is not None:
        return True
    return not is_none(one.value) and ranks_at(module, one.node, project=project) in (Ranks.ZERO, Ranks.LOCAL_ZERO)


def _is_of_every_rank(project: Project, module: SourceModule, node: ast.expr, partial: Partial) -> bool:
    """True where every rank comes to the use: of a field, and of a name of the file, by a call that is seen to be theirs."""
    if ranks_at(module, node, project=project).some:
        return False
    ranks, function = ranks_reaching(project, module, node), module.function_of(node)
    if function is None or (partial.module is module and module.function_of(partial.node) is function):
        return not ranks.some or ranks is Ranks.UNKNOWN
    if isinstance(node, ast.Call) or (isinstance(node, ast.Name) and bindings_in(module, function, node.id)):
        return not ranks.some or ranks is Ranks.UNKNOWN
    return not ranks.some and _is_called_by_all(project, FunctionSite(module, function), 0)


def is_called_by_all(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True where calls lead to a function from its own file, and one of them is seen to keep no rank out."""
    uses = uses_of(project, module, function).outside_tests()
    own = any(c.module is module for c in uses.calls)
    return own and _is_called_by_all(project, FunctionSite(module, function), 0)


def _is_called_by_all(project: Project, site: FunctionSite, depth: int) -> bool:
    """True where a call that is surely one of the function keeps no rank out, or nobody of the project calls it."""
    uses = uses_of(project, site.module, site.node).outside_tests()
    if uses.more or uses.handed_on:
        return False
    led = ((c, called_function(project, c.module, c.call)) for c in uses.calls)
    sure = [c for c, found in led if found is not None and found.node is site.node]
    if not sure:
        return len(uses.calls) <= _FEW and all(_keeps_nobody_out(project, c.module, c.call, depth) for c in uses.calls)
    return any(_keeps_nobody_out(project, c.module, c.call, depth) for c in sure)


def _keeps_nobody_out(project: Project, module: SourceModule, call: ast.Call, depth: int) -> bool:
    if ranks_at(module, call, project=project).some or is_kept_from(project, module, call, dotted(call.func)):
        return False
    function = module.function_of(call)
    return function is None or depth >= _HANDED or _is_called_by_all(project, FunctionSite(module, function), depth + 1)


def _handed_to(module: SourceModule, node: ast.expr) -> ast.Call | None:
    up = module.parent(node)
    if isinstance(up, ast.keyword):
        up = module.parent(up)
    if isinstance(up, ast.Call) and up.func is not node and last(dotted(up.func)) not in ("print", "len"):
        return up
    return None


def _inside(
    project: Project, module: SourceModule, call: ast.Call, node: ast.expr, depth: int
) -> tuple[SourceModule, ast.expr] | None:
    """Where the function that is called needs the value that it is handed."""
    site = called_function(project, module, call)
    if site is None or site.node.name == "__init__":
        return None
    name = held_as(site, call, node)
    if not name:
        return None
    for read in _reads_in(site, name):
        if ranks_at(site.module, read, project=project).some or is_kept_from(project, site.module, read, name):
            continue
        if needs_value(site.module, read):
            return site.module, read
        further = _handed_to(site.module, read) if depth < _HANDED else None
        if further is not None and (found := _inside(project, site.module, further, read, depth + 1)) is not None:
            return found
    return None


def _reads_in(site: FunctionSite, name: str) -> Iterator[ast.Name]:
    for read in site.module.reads_of(name):
        if isinstance(read, ast.Name) and site.module.function_of(read) is site.node:
            yield read
