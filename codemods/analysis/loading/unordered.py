"""Lists without an order of their own: what a file system lists, and what a set of texts gives."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import Binding, bindings_of, name_or_field_bindings
from codemods.analysis.names import dotted, last, qualified
from codemods.files.source import SourceModule, walk
from codemods.runtime.record import record, replace

_LISTS = frozenset({"glob.glob", "glob.iglob", "os.listdir"})
_OF_PATHS = frozenset({"glob", "rglob", "iterdir"})
_PASSES = frozenset({"list", "tuple", "filter", "map", "enumerate"})
_DEPTH = 6
_OF_SETS = frozenset(set(dir(set)) - set(dir(list)))


@record
class Unordered:
    """An expression that gives elements in no certain order. files: of a folder; else of a set. read: the name it is read by."""

    node: ast.expr
    files: bool
    read: ast.expr | None = None


def unordered(module: SourceModule, node: ast.expr, depth: int = 0) -> Unordered | None:
    """Where the order of a list is lost; None where it is sorted, or made in a way that keeps an order."""
    if depth > _DEPTH:
        return None
    if isinstance(node, ast.Call):
        return _called(module, node, depth)
    if isinstance(node, (ast.Set, ast.SetComp)) or _is_of_keys(module, node):
        return Unordered(node, files=False)
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return unordered(module, node.generators[0].iter, depth + 1) if len(node.generators) == 1 else None
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        return unordered(module, node.value, depth + 1)
    if isinstance(node, (ast.Name, ast.Attribute)):
        return _named(module, node, depth)
    return None


def _called(module: SourceModule, node: ast.Call, depth: int) -> Unordered | None:
    name = qualified(module, node.func)
    if name in _LISTS:
        return Unordered(node, files=True)
    if name in ("set", "frozenset"):
        return Unordered(node, files=False)
    if isinstance(node.func, ast.Attribute) and node.func.attr in _OF_PATHS and not _is_module(module, node.func.value):
        return Unordered(node, files=True)
    if name in _PASSES and node.args:
        return unordered(module, node.args[-1], depth + 1)
    return None


def _is_of_keys(module: SourceModule, node: ast.expr) -> bool:
    """True for `a.keys() & b.keys()`, and for such an expression of sets."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.BitXor, ast.Sub)):
        return False
    return any(
        isinstance(n, ast.Call) and (dotted(n.func) in ("set", "frozenset") or _is_keys(n)) for n in (node.left, node.right)
    )


def _is_keys(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "keys" and not call.args


def _is_module(module: SourceModule, node: ast.expr) -> bool:
    """True for a name that is imported: its `glob` is one of a package."""
    return dotted(node).partition(".")[0] in module.imports


def _named(module: SourceModule, node: ast.Name | ast.Attribute, depth: int) -> Unordered | None:
    bound = name_or_field_bindings(module, node)
    if isinstance(node, ast.Name) and _is_set_of_a_dict(module, node, bound):
        return Unordered(node, files=False)
    if is_sorted_in_place(module, dotted(node), node):
        return None
    found = [
        unordered(module, b.value, depth + 1)
        for b in bound
        if b.value is not None and not b.part and not _is_of_itself(b.value, node)
    ]
    made = [f for f in found if f is not None]
    if not made or len(made) != len(found):
        return None
    return replace(made[0], read=node) if any(b.value is made[0].node for b in bound) else made[0]


def _is_set_of_a_dict(module: SourceModule, node: ast.Name, bound: list[Binding]) -> bool:
    """True for the variable of a loop over the values of `defaultdict(set)`."""
    heads = [(up.target, up.iter) for up in module.ancestors(node) if isinstance(up, ast.For)]
    comps = (up for up in module.ancestors(node) if isinstance(up, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)))
    heads += [(g.target, g.iter) for comp in comps for g in comp.generators]
    for target, source in heads:
        if not isinstance(source, ast.Call) or not isinstance(source.func, ast.Attribute) or source.args:
            continue
        pair = isinstance(target, ast.Tuple) and len(target.elts) == 2 and dotted(target.elts[1]) == node.id
        named = pair if source.func.attr == "items" else source.func.attr == "values" and dotted(target) == node.id
        if named and len(bound) < 2 and isinstance(source.func.value, ast.Name):
            made = [b.value for b in bindings_of(module, source.func.value)]
            return bool(made) and all(isinstance(v, ast.Call) and _makes_sets(module, v) for v in made)
    return False


def _makes_sets(module: SourceModule, call: ast.Call) -> bool:
    return qualified(module, call.func) == "collections.defaultdict" and len(call.args) == 1 and dotted(call.args[0]) == "set"


def _is_of_itself(value: ast.expr, node: ast.expr) -> bool:
    """True for `files = files[:n]`."""
    return isinstance(value, ast.Subscript) and dotted(value.value) == dotted(node)


def is_sorted_in_place(module: SourceModule, name: str, at: ast.AST) -> bool:
    """True where `name.sort(...)` stands anywhere in the function or class."""
    home = module.class_of(at) if name.startswith("self.") else module.function_of(at)
    for call in module.calls_named("sort"):
        if isinstance(call.func, ast.Attribute) and dotted(call.func.value) == name:
            if home is (module.class_of(call) if name.startswith("self.") else module.function_of(call)):
                return True
    return False


def sorted_text(module: SourceModule, found: Unordered) -> tuple[ast.expr, str]:
    """(what is replaced, by what): a `list(...)` round it becomes `sorted(...)`, anything else stands inside of one."""
    node = found.read if found.read is not None and _stays_a_set(module, found) else found.node
    up = module.parent(node)
    if isinstance(up, ast.Call) and dotted(up.func) == "list" and len(up.args) == 1:
        return up, f"sorted({module.text_of(node)})"
    inner = last(dotted(node.func)) if isinstance(node, ast.Call) else ""
    return node, f"sorted({module.text_of(node)})" if inner != "sorted" else module.text_of(node)


def _stays_a_set(module: SourceModule, found: Unordered) -> bool:
    """True where the name is used as a set elsewhere (`names.add(x)`, `names | more`), which a list does not do."""
    if found.files or found.read is None:
        return False
    if isinstance(found.node, ast.Call) and not found.node.args:
        return True  # `set()` has no order: whatever fills it does so by the name
    name = dotted(found.read)
    home = module.class_of(found.read) if name.startswith("self.") else module.function_of(found.read)
    for node in walk(home if home is not None else module.tree):
        if isinstance(node, ast.Attribute) and node.attr in _OF_SETS and dotted(node.value) == name:
            return True
        if isinstance(node, ast.AugAssign) and dotted(node.target) == name:
            return True
        if isinstance(node, ast.BinOp) and name in (dotted(node.left), dotted(node.right)):
            return True
        if isinstance(node, ast.Compare) and name in map(dotted, (node.left, *node.comparators)):
            return True  # `x in names` by hash, `names <= known`
    return False
