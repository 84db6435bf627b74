"""Data sets whose rows stand in the order of a set of texts, which is another one in each process."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import attribute_bindings, bindings_of
from codemods.analysis.class_index import ClassSite, class_facts
from codemods.analysis.loading.dealt_out import deals
from codemods.analysis.loading.samplers import Loader
from codemods.analysis.loading.shuffled_alone import taken_by_index
from codemods.analysis.loading.unordered import unordered
from codemods.analysis.names import dotted, last, qualified
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_TEXTS = frozenset({"stem", "name", "suffix"})
_MAKES_TEXT = frozenset({"str", "split", "rsplit", "strip", "rstrip", "lstrip", "lower", "upper", "replace", "decode", "basename",
                         "splitext", "dirname", "join", "readlines", "listdir", "glob", "relpath", "hexdigest"})  # fmt: skip
_TAKES_TEXT = frozenset({"open", "join", "imread", "Path", "load_image", "exists", "read_image"})
_DEPTH = 3


@record
class RowsOfSet:
    """value: what is made the rows; item: the place in the data set `site` where one is taken by its index; inside: the set.

    loader: deals them out.
    """

    value: ast.expr
    name: str
    inside: ast.expr
    item: ast.Subscript
    site: ClassSite
    loader: Loader


def rows_of_sets(project: Project, module: SourceModule) -> Iterator[RowsOfSet]:
    seen: set[int] = set()
    for deal in deals(project, module.path):
        if deal.site.module is not module:
            continue
        method = class_facts(project, module, deal.site.node).method("__getitem__")
        for name, item in taken_by_index(project, deal.site).items() if method is not None else ():
            found = unordered(module, item.value)
            bound = attribute_bindings(module, item.value) if isinstance(item.value, ast.Attribute) else []
            if found is None or found.files or len(bound) != 1 or bound[0].value is None or id(bound[0].value) in seen:
                continue
            value = bound[0].value
            if has_texts(module, found.node, 0) or (method is not None and _is_taken_for_text(method[1], name)):
                seen.add(id(value))
                yield RowsOfSet(value, name, found.node, item, deal.site, deal.loader)


def has_texts(module: SourceModule, node: ast.expr, depth: int) -> bool:
    """True where the elements are shown to be texts: those of numbers have one order in all processes."""
    if depth > _DEPTH:
        return False
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        return True
    if isinstance(node, ast.Attribute) and node.attr in _TEXTS:
        return True
    if isinstance(node, ast.BinOp):
        return has_texts(module, node.left, depth) or has_texts(module, node.right, depth)
    if isinstance(node, ast.Subscript):
        return has_texts(module, node.value, depth + 1) if isinstance(node.value, ast.Call) else False
    if isinstance(node, ast.DictComp):
        return has_texts(module, node.key, depth + 1)
    if isinstance(node, (ast.SetComp, ast.ListComp, ast.GeneratorExp)):
        return has_texts(module, node.elt, depth + 1)
    if isinstance(node, ast.Name):
        bound = bindings_of(module, node)
        return any(b.value is not None and not b.part and has_texts(module, b.value, depth + 1) for b in bound)
    if isinstance(node, ast.Call):
        name = last(qualified(module, node.func)) or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
        if name in ("set", "frozenset", "list", "tuple") and node.args:
            return has_texts(module, node.args[0], depth + 1)
        if name in ("keys", "union", "intersection", "difference") and isinstance(node.func, ast.Attribute):
            return has_texts(module, node.func.value, depth + 1)
        return name in _MAKES_TEXT
    return False


def takes_for_text(project: Project, site: ClassSite, name: str) -> bool:
    """True where `__getitem__` of the class makes a path or a text of an element of `name`."""
    method = class_facts(project, site.module, site.node).method("__getitem__")
    return method is not None and _is_taken_for_text(method[1], name)


def _is_taken_for_text(method: FunctionNode, name: str) -> bool:
    """True where `__getitem__` makes a path or a text of the row: `os.path.join(self.root, self.names[index])`."""
    rows = {n for n in walk(method) if isinstance(n, ast.Subscript) and dotted(n.value) == name}
    given = (s for s in walk(method) if isinstance(s, ast.Assign) and s.value in rows)
    names = {dotted(t) for s in given for t in s.targets} - {""}
    for node in walk(method):
        if isinstance(node, ast.Call) and last(dotted(node.func)) in _TAKES_TEXT:
            parts = node.args
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            parts = [node.right]
        else:
            continue
        if any(p in rows or dotted(p) in names for p in parts):
            return True
    return False
