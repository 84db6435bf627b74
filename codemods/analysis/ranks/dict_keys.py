"""Which keys every rank puts into a dict, and which rank 0 alone: followed through `update` and what functions give.

A dict of which one use cannot be read has unknown keys: somebody else may put one in.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import attribute_bindings, bindings_in, bindings_of, only_value
from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.class_index import ClassSite, overriding
from codemods.analysis.handed import held_as
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.files.source import SourceModule, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_DEPTH = 3
_ASKED = frozenset({"items", "keys", "values", "get", "copy"})
_PLAIN = frozenset({"no_grad", "inference_mode", "staticmethod", "classmethod"})
_SHOWING = frozenset({"print", "len", "str", "repr", "sorted", "dict", "log", "log_metrics", "info", "debug", "warning", "dumps"})


@record
class Key:
    """What a key is, or begins with where it is not `whole`. node: where it is put in, in `module`."""

    text: str
    whole: bool
    module: SourceModule
    node: ast.AST

    def may_be(self, other: Key) -> bool:
        if self.whole:
            return self.text == other.text if other.whole else self.text.startswith(other.text)
        return other.text.startswith(self.text) or (not other.whole and self.text.startswith(other.text))


@record
class Keys:
    """common: those of every rank. zero: those of rank 0 alone."""

    common: tuple[Key, ...] = ()
    zero: tuple[Key, ...] = ()

    def lost(self, read: Key) -> Key | None:
        """The key of rank 0 that a read means; None where the others may have it, or nobody."""
        if any(k.may_be(read) for k in self.common):
            return None
        return next((k for k in self.zero if k.may_be(read)), None)


def key_of(module: SourceModule, node: ast.expr | None, depth: int = 0) -> Key | None:
    """`"val_loss"`, `"val_" + name`, f"val_{name}", and a name or field that is one of them."""
    if isinstance(node, ast.Constant):
        return Key(node.value, True, module, node) if isinstance(node.value, str) else None
    start = node.left if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) else None
    if isinstance(node, ast.JoinedStr) and node.values:
        start = node.values[0]
    if isinstance(start, ast.Constant) and isinstance(start.value, str) and start.value:
        assert node is not None
        return Key(start.value, False, module, node)
    if depth > 1 or not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    bound = bindings_of(module, node) if isinstance(node, ast.Name) else attribute_bindings(module, node)
    return key_of(module, only_value(bound), depth + 1)


def keys_of(project: Project, module: SourceModule, function: ast.FunctionDef, name: str, depth: int = 0) -> Keys | None:
    """The keys of a local dict, None where they are not all seen."""
    bound = bindings_in(module, function, name)
    if depth > _DEPTH or len(bound) != 1 or bound[0].part or bound[0].value is None:
        return None
    if ranks_at(module, bound[0].node, project=project).some:
        return None
    found = _Found(project, module)
    if not found.take(bound[0].value, bound[0].node, depth):
        return None
    reads = (n for n in walk_scope(function) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load))
    if not all(found.follow(n, depth) for n in reads) or _is_kept_inside(module, function, name):
        return None
    return Keys(tuple(found.common), tuple(found.zero))


def _is_kept_inside(module: SourceModule, function: ast.FunctionDef, name: str) -> bool:
    """True where a function inside has hold of it."""
    return any(isinstance(n, ast.Name) and module.function_of(n) is not function and function in module.ancestors(n)
               for n in module.reads_of(name))  # fmt: skip


class _Found:
    def __init__(self, project: Project, module: SourceModule) -> None:
        self.project, self.module = project, module
        self.common: list[Key] = []
        self.zero: list[Key] = []

    def follow(self, read: ast.Name, depth: int) -> bool:
        """Take what one use of the name puts in; False for one that cannot be read."""
        up = self.module.parent(read)
        if isinstance(up, ast.Subscript) and up.value is read:
            return isinstance(up.ctx, ast.Load) or self._put(key_of(self.module, up.slice), up)
        if isinstance(up, ast.Attribute):
            call = self.module.parent(up)
            if up.attr == "update" and isinstance(call, ast.Call) and call.func is up:
                given = [*call.args, *(k.value for k in call.keywords if k.arg is None)]
                named = [Key(k.arg, True, self.module, k.value) for k in call.keywords if k.arg is not None]
                return all(self.take(a, call, depth) for a in given) and all(self._put(k, call) for k in named)
            return up.attr in _ASKED
        if isinstance(up, (ast.Return, ast.Compare, ast.For, ast.FormattedValue, ast.If, ast.UnaryOp)):
            return True
        call = self.module.parent(up) if isinstance(up, ast.keyword) else up
        return isinstance(call, ast.Call) and call.func is not read and self._is_left_alone(call, read)

    def take(self, value: ast.expr, at: ast.AST, depth: int) -> bool:
        """The keys of what the dict is made of, or told to take in."""
        if isinstance(value, ast.Dict):
            return all(self._put(key_of(self.module, k), at) for k in value.keys)
        if isinstance(value, ast.DictComp):
            return self._put(key_of(self.module, value.key), at)
        if isinstance(value, ast.Call) and dotted(value.func) == "dict" and not value.args:
            return all(k.arg is not None and self._put(Key(k.arg, True, self.module, k.value), at) for k in value.keywords)
        if isinstance(value, ast.Name):
            bound = bindings_of(self.module, value)
            value = only_value(bound) or value
        given = _given(self.project, self.module, value, depth) if isinstance(value, ast.Call) else None
        if given is None:
            return False
        ranks = ranks_at(self.module, at, project=self.project)
        self.zero += given.zero if not ranks.some else (*given.common, *given.zero)
        self.common += given.common if not ranks.some else ()
        return not ranks.some or ranks in (Ranks.ZERO, Ranks.LOCAL_ZERO)

    def _put(self, key: Key | None, at: ast.AST) -> bool:
        ranks = ranks_at(self.module, at, project=self.project)
        if key is None or (ranks.some and ranks not in (Ranks.ZERO, Ranks.LOCAL_ZERO)):
            return False
        (self.zero if ranks.some else self.common).append(key)
        return True

    def _is_left_alone(self, call: ast.Call, read: ast.Name) -> bool:
        """True for a call that only looks at the dict."""
        site = called_function(self.project, self.module, call)
        if site is None:
            return last(dotted(call.func)) in _SHOWING
        name = held_as(site, call, read)
        return bool(name) and all(_only_looks(site.module, n) for n in reads_in(site, name))


def _only_looks(module: SourceModule, read: ast.Name) -> bool:
    up = module.parent(read)
    if isinstance(up, ast.Subscript) and up.value is read:
        return isinstance(up.ctx, ast.Load)
    if isinstance(up, ast.Attribute):
        return up.attr in _ASKED
    taken = isinstance(up, ast.Call) and isinstance(up.func, ast.Attribute) and up.func.attr == "update" and read in up.args
    return taken or isinstance(up, (ast.Compare, ast.For, ast.FormattedValue))


def reads_in(site: FunctionSite, name: str) -> Iterator[ast.Name]:
    for node in walk_scope(site.node):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            yield node


def _given(project: Project, module: SourceModule, call: ast.Call, depth: int) -> Keys | None:
    """The keys of the dict that a function gives back, where it always gives back that one."""
    site = called_function(project, module, call)
    owner = site.module.parent(site.node) if site is not None else None
    if site is not None and isinstance(owner, ast.ClassDef):
        heirs = overriding(project, ClassSite(site.module, owner), site.node.name)
        if heirs is None or len(heirs) > 1:
            return None
        for heir in heirs:
            made = [f for f in heir.node.body if isinstance(f, ast.FunctionDef) and f.name == site.node.name]
            if not made or not _is_abstract(site.node):
                return None
            site = FunctionSite(heir.module, made[0])
    if site is None or not isinstance(site.node, ast.FunctionDef) or site.node.name == "__init__":
        return None
    inside = list(walk_scope(site.node))
    given = [n.value for n in inside if isinstance(n, ast.Return)]
    names = {g.id for g in given if isinstance(g, ast.Name)}
    yields = any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in inside)
    if len(names) != 1 or yields or not all(isinstance(g, ast.Name) for g in given):
        return None
    if any(last(dotted(d)) not in _PLAIN for d in site.node.decorator_list):
        return None
    return keys_of(project, site.module, site.node, names.pop(), depth + 1)


def _is_abstract(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """True for a method that its heirs have to make."""
    if any(last(dotted(d)) == "abstractmethod" for d in function.decorator_list):
        return True
    return isinstance(function.body[-1], (ast.Raise, ast.Pass)) and len(function.body) <= 2
